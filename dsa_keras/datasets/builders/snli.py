"""`dsa_snli`: SNLI without the rows that have no gold label (see `dsa_keras.datasets.snli`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import tensorflow_datasets as tfds

from dsa_keras.datasets import nli, snli
from dsa_keras.datasets.builders.official import check_sizes, official_data
from dsa_keras.datasets.dataset import Split

PUBLISHED = {"train": 549_367, "dev": 9_842, "test": 9_824}


@dataclass(eq=False, kw_only=True)
class SnliConfig(tfds.core.BuilderConfig):
    """All of SNLI, or whatever part is there.

    Attributes:
        expected: the published size of every split; None accepts any.
    """

    expected: dict[str, int] | None = None


class DsaSnli(tfds.core.GeneratorBasedBuilder):
    """Builder of `dsa_snli/complete` (the default) and `dsa_snli/part`.

    A part is a data set of another name, so that a result on it cannot pass for one on SNLI.
    """

    VERSION = tfds.core.Version("1.0.0")
    MANUAL_DOWNLOAD_INSTRUCTIONS = snli.LAYOUT.instructions()
    BUILDER_CONFIGS = [  # noqa: RUF012 (the name and form are those of TFDS)
        SnliConfig(
            name="complete",
            description="The three published splits, their sizes checked.",
            expected=PUBLISHED,
        ),
        SnliConfig(name="part", description="Whatever splits and rows are there."),
    ]

    def _info(self) -> tfds.core.DatasetInfo:
        return self.dataset_info_from_configs(
            description="Stanford Natural Language Inference, labelled pairs only.",
            homepage="https://nlp.stanford.edu/projects/snli/",
            features=tfds.features.FeaturesDict(
                {
                    "premise": tfds.features.Text(),
                    "hypothesis": tfds.features.Text(),
                    "label": tfds.features.ClassLabel(names=list(nli.CLASS_NAMES)),
                }
            ),
        )

    def _split_generators(self, dl_manager: tfds.download.DownloadManager) -> dict[str, Any]:
        place = official_data(dl_manager, snli.LAYOUT)
        dataset = snli.load_snli(place)
        hint = f'{snli.LAYOUT.instructions()} For a part of SNLI, ask for "dsa_snli/part".'
        check_sizes(dataset, self.builder_config.expected, place, hint)
        return {name: self._generate_examples(split) for name, split in dataset.splits.items()}

    def _generate_examples(self, split: Split) -> Iterator[tuple[int, dict[str, Any]]]:
        for index, (pair, label) in enumerate(zip(split.texts, split.targets, strict=True)):
            yield index, {"premise": pair[0], "hypothesis": pair[1], "label": int(label)}
