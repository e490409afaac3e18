"""The configuration for TensorFlow Serving: real messages, ports and paths that agree."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format

from dsa_keras.export.server import metrics
from dsa_keras.export.server.options import ServerOptions

SERVING = Path(__file__).parents[1] / "export" / "serving"
KUBERNETES = SERVING / "kubernetes"
FIELD = descriptor_pb2.FieldDescriptorProto


def messages():
    """BatchingParameters and MonitoringConfig, which tensorflow-serving-api does not ship.

    Fields and numbers are those of session_bundle_config.proto and monitoring_config.proto.
    """
    file = descriptor_pb2.FileDescriptorProto(
        name="test_serving_configs.proto",
        package="test.serving",
        syntax="proto3",
        dependency=["google/protobuf/wrappers.proto"],
    )

    def add(message, fields):
        entry = file.message_type.add(name=message)
        for number, (name, kind) in enumerate(fields.items(), start=1):
            field = entry.field.add(name=name, number=number, label=FIELD.LABEL_OPTIONAL)
            if isinstance(kind, str):
                field.type, field.type_name = FIELD.TYPE_MESSAGE, kind
            else:
                field.type = kind

    integer, text = ".google.protobuf.Int64Value", ".google.protobuf.StringValue"
    add(
        "BatchingParameters",
        {
            "max_batch_size": integer,
            "batch_timeout_micros": integer,
            "max_enqueued_batches": integer,
            "num_batch_threads": integer,
            "thread_pool_name": text,
            "allowed_batch_sizes": FIELD.TYPE_INT64,
            "pad_variable_length_inputs": FIELD.TYPE_BOOL,
        },
    )
    file.message_type[0].field[5].label = FIELD.LABEL_REPEATED
    add("PrometheusConfig", {"enable": FIELD.TYPE_BOOL, "path": FIELD.TYPE_STRING})
    add("MonitoringConfig", {"prometheus_config": ".test.serving.PrometheusConfig"})
    from google.protobuf import wrappers_pb2

    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(wrappers_pb2.DESCRIPTOR.serialized_pb)
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"test.serving.{name}"))
        for name in ("BatchingParameters", "MonitoringConfig")
    }


def parsed(name, message):
    return text_format.Parse((SERVING / name).read_text(), message)


def documents(*parts):
    return yaml.safe_load(SERVING.joinpath(*parts).read_text())


@pytest.fixture(scope="module")
def models():
    from tensorflow_serving.config import model_server_config_pb2

    return parsed("models.config", model_server_config_pb2.ModelServerConfig())


@pytest.fixture(scope="module")
def container():
    return documents("kubernetes", "deployment.yaml")["spec"]["template"]["spec"]["containers"][0]


def test_models_config_is_a_model_server_config(models):
    (model,) = models.model_config_list.config
    assert (model.name, model.base_path) == ("sentiment", "/models/sentiment")
    assert model.model_platform == "tensorflow"
    assert model.model_version_policy.latest.num_versions == 1


def test_commented_lines_of_models_config_are_valid_too(models):
    from tensorflow_serving.config import model_server_config_pb2

    text = (SERVING / "models.config").read_text()
    lines = [line.strip()[1:] for line in text.splitlines() if line.strip().startswith("#   ")]
    config = text_format.Parse("\n".join(lines), model_server_config_pb2.ModelConfig())
    assert list(config.model_version_policy.specific.versions) == [1, 2]
    assert config.version_labels["stable"] == 1


def test_batching_config_has_the_defaults_of_serve():
    batching = parsed("batching.config", messages()["BatchingParameters"]())
    defaults = ServerOptions(())
    for name in ("max_batch_size", "batch_timeout_micros", "max_enqueued_batches"):
        assert getattr(batching, name).value == getattr(defaults, name)
    assert not batching.pad_variable_length_inputs
    assert not batching.allowed_batch_sizes


def test_monitoring_config_has_the_path_of_serve():
    monitoring = parsed("monitoring.config", messages()["MonitoringConfig"]())
    assert monitoring.prometheus_config.enable
    assert monitoring.prometheus_config.path == metrics.PATH


def test_misspelt_settings_would_be_noticed():
    with pytest.raises(text_format.ParseError, match="max_batch_sizes"):
        text_format.Parse("max_batch_sizes { value: 1 }", messages()["BatchingParameters"]())


def flags(words):
    return dict(word.removeprefix("--").split("=", 1) for word in words)


def test_docker_and_kubernetes_start_the_same_server(container):
    docker = documents("docker-compose.yml")["services"]["tensorflow-serving"]
    assert docker["image"] == container["image"]
    assert docker["entrypoint"] == container["command"]
    changed = {
        name
        for name, value in flags(docker["command"]).items()
        if flags(container["args"]).get(name) != value
    }
    assert changed == {"file_system_poll_wait_seconds"}


def test_docker_mounts_what_its_flags_name_and_listens_on_this_machine_only(models):
    service = documents("docker-compose.yml")["services"]["tensorflow-serving"]
    mounts = {volume["target"]: volume for volume in service["volumes"]}
    assert all(volume["read_only"] for volume in mounts.values())
    assert mounts["/config"]["source"] == "."
    for flag, value in flags(service["command"]).items():
        if value.startswith("/"):
            assert (SERVING / Path(value).relative_to("/config")).exists(), flag
    assert Path(models.model_config_list.config[0].base_path).parent == Path("/models")
    arguments = flags(service["command"])
    ports = [f"127.0.0.1:{p}:{p}" for p in (arguments["port"], arguments["rest_api_port"])]
    assert service["ports"] == ports
    assert (
        f"/v1/models/{models.model_config_list.config[0].name} "
        in service["healthcheck"]["test"][3]
    )


def test_threads_and_cpus_agree(container):
    batching = parsed("batching.config", messages()["BatchingParameters"]())
    docker = documents("docker-compose.yml")["services"]["tensorflow-serving"]
    assert (
        docker["deploy"]["resources"]["limits"]["cpus"] == container["resources"]["limits"]["cpu"]
    )
    assert int(container["resources"]["limits"]["cpu"]) == batching.num_batch_threads.value


def test_kubernetes_labels_and_names_agree():
    deployment = documents("kubernetes", "deployment.yaml")
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    for name, path in (
        ("deployment.yaml", ["spec", "selector", "matchLabels"]),
        ("service.yaml", ["spec", "selector"]),
        ("disruption-budget.yaml", ["spec", "selector", "matchLabels"]),
    ):
        selector = documents("kubernetes", name)
        for key in path:
            selector = selector[key]
        assert selector.items() <= labels.items(), name
    target = documents("kubernetes", "autoscaler.yaml")["spec"]["scaleTargetRef"]
    assert (target["apiVersion"], target["kind"]) == (deployment["apiVersion"], deployment["kind"])
    assert target["name"] == deployment["metadata"]["name"]


def test_kubernetes_ports_agree(container):
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    arguments = flags(container["args"])
    assert ports == {"grpc": int(arguments["port"]), "rest": int(arguments["rest_api_port"])}
    service = documents("kubernetes", "service.yaml")["spec"]["ports"]
    assert {port["targetPort"]: port["port"] for port in service} == ports
    annotations = documents("kubernetes", "deployment.yaml")["spec"]["template"]["metadata"][
        "annotations"
    ]
    assert int(annotations["prometheus.io/port"]) == ports["rest"]
    assert annotations["prometheus.io/path"] == metrics.PATH


def test_kubernetes_probes_ask_for_the_model(container, models):
    name = models.model_config_list.config[0].name
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        asked = container[probe]["httpGet"]
        assert asked["port"] == "rest"
        assert asked["path"].removesuffix("/metadata") == f"/v1/models/{name}"


def test_kubernetes_volumes_exist(container):
    spec = documents("kubernetes", "deployment.yaml")["spec"]["template"]["spec"]
    volumes = {volume["name"]: volume for volume in spec["volumes"]}
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert mounts.keys() == volumes.keys()
    claim = documents("kubernetes", "models-volume.yaml")["metadata"]["name"]
    assert volumes["models"]["persistentVolumeClaim"]["claimName"] == claim
    kustomization = documents("kubernetes", "kustomization.yaml")
    (config,) = kustomization["configMapGenerator"]
    assert volumes["config"]["configMap"]["name"] == config["name"]
    files = {Path(file).name for file in config["files"]}
    needed = {
        Path(v).name for v in flags(container["args"]).values() if v.startswith(mounts["config"])
    }
    assert files == needed
    assert all((KUBERNETES / file).exists() for file in config["files"])


def test_kustomization_lists_every_manifest():
    listed = set(documents("kubernetes", "kustomization.yaml")["resources"])
    assert listed == {path.name for path in KUBERNETES.glob("*.yaml")} - {"kustomization.yaml"}


def test_replicas_survive_a_disruption():
    least = documents("kubernetes", "disruption-budget.yaml")["spec"]["minAvailable"]
    assert documents("kubernetes", "autoscaler.yaml")["spec"]["minReplicas"] > least
    spec = documents("kubernetes", "deployment.yaml")["spec"]
    assert "replicas" not in spec
    assert spec["strategy"]["rollingUpdate"]["maxUnavailable"] == 0


def test_requests_leave_room_below_limits(container):
    asked, most = container["resources"]["requests"], container["resources"]["limits"]
    assert int(asked["cpu"]) <= int(most["cpu"])
    assert int(asked["memory"].removesuffix("Gi")) <= int(most["memory"].removesuffix("Gi"))
