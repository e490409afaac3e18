"""What a server can be told, with the defaults of the command line."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

from dsa_keras.errors import ConfigError
from dsa_keras.export.versions import version_folders


@dataclasses.dataclass(frozen=True)
class ServerOptions:
    """The settings of a server.

    Attributes:
        folders: folders of models; each holds numbered version folders and names its model.
        host: address to listen on; loopback unless told otherwise.
        rest_port: port of the REST interface; 0 chooses a free one.
        grpc_port: port of the gRPC interface; 0 chooses a free one.
        labels: version numbers by label; a labelled version stays loaded.
        batching: False runs every request by itself.
        max_batch_size: most rows in one request and in one merged batch.
        batch_timeout_micros: how long a request may wait for others to join it.
        max_enqueued_batches: how many full batches may wait before requests are refused.
        num_batch_threads: how many batches run at the same time.
        max_body_bytes: longest request body.
        request_timeout: seconds a request may take, reading its body included.
        poll_seconds: how often the folders are looked at for new versions.
        warm_up: False skips the requests in `assets.extra/tf_serving_warmup_requests`.
    """

    folders: tuple[Path, ...]
    host: str = "127.0.0.1"
    rest_port: int = 8501
    grpc_port: int = 8500
    labels: dict[str, int] = dataclasses.field(default_factory=dict)
    batching: bool = True
    max_batch_size: int = 128
    batch_timeout_micros: int = 0
    max_enqueued_batches: int = 10
    num_batch_threads: int = os.cpu_count() or 1
    max_body_bytes: int = 4 * 1024 * 1024
    request_timeout: float = 30.0
    poll_seconds: float = 1.0
    warm_up: bool = True

    def __post_init__(self) -> None:
        lowest = {
            "rest_port": 0,
            "grpc_port": 0,
            "max_batch_size": 1,
            "batch_timeout_micros": 0,
            "max_enqueued_batches": 1,
            "num_batch_threads": 1,
            "max_body_bytes": 1,
        }
        for name, least in lowest.items():
            if getattr(self, name) < least:
                raise ConfigError(
                    f"{getattr(self, name)} is too small",
                    where=_option(name),
                    hint=f"Give at least {least}",
                )
        for name in ("request_timeout", "poll_seconds"):
            if not 0 < getattr(self, name) < float("inf"):
                raise ConfigError(
                    f"{getattr(self, name)} is not a length of time",
                    where=_option(name),
                    hint="Give a number of seconds above 0",
                )
        for port in (self.rest_port, self.grpc_port):
            if port > 65535:
                raise ConfigError(f"there is no port {port}", hint="Give a number up to 65535")
        if self.rest_port == self.grpc_port != 0:
            raise ConfigError(
                f"REST and gRPC cannot both listen on port {self.rest_port}",
                hint="Give another --rest-port or --grpc-port",
            )
        names = [folder.name for folder in self.folders]
        for folder in self.folders:
            self._check_folder(folder)
        if len(set(names)) < len(names):
            raise ConfigError(
                f"two models have the same name ({', '.join(sorted(names))})",
                hint="A model is named after its folder: rename one",
            )

    def _check_folder(self, folder: Path) -> None:
        if not folder.is_dir():
            raise ConfigError(
                "no such folder",
                where=folder,
                hint="Make a model with dsa-keras export saved-model",
            )
        if (folder / "saved_model.pb").exists():
            raise ConfigError(
                "is one version of a model, not the folder of its versions",
                where=folder,
                hint=f"Serve {folder.parent}",
            )
        if not version_folders(folder):
            raise ConfigError(
                "has no version folder (1, 2, ...)",
                where=folder,
                hint="Make one with dsa-keras export saved-model",
            )
        for label, version in self.labels.items():
            if version not in version_folders(folder):
                raise ConfigError(
                    f"label {label} names version {version}, which is not there", where=folder
                )


def address(host: str, port: int) -> str:
    """A host and a port as URLs and gRPC write them."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _option(field: str) -> str:
    return "--" + field.replace("_", "-")
