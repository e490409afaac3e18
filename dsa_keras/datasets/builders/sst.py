"""`dsa_sst`: the Stanford Sentiment Treebank; `dsa_keras.datasets.sst` says what its rows are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import tensorflow_datasets as tfds

from dsa_keras.datasets import sst
from dsa_keras.datasets.builders.official import check_sizes, official_data
from dsa_keras.datasets.dataset import Split

_SST2_SENTENCES = {"train": 6_920, "dev": 872, "test": 1_821}
_SST5_SENTENCES = {"train": 8_544, "dev": 1_101, "test": 2_210}


@dataclass(eq=False, kw_only=True)
class SstConfig(tfds.core.BuilderConfig):
    """A variant of the treebank.

    Attributes:
        classes: "sst2" or "sst5".
        phrases: whether training examples are all phrases, or whole sentences only.
        expected: the published size of every split; None accepts any.
    """

    classes: str = "sst2"
    phrases: bool = True
    expected: dict[str, int] | None = None


class DsaSst(tfds.core.GeneratorBasedBuilder):
    """Builder of `dsa_sst/sst2`, `dsa_sst/sst5`, and both with sentences only."""

    VERSION = tfds.core.Version("1.0.0")
    MANUAL_DOWNLOAD_INSTRUCTIONS = sst.LAYOUT.instructions()
    BUILDER_CONFIGS = [  # noqa: RUF012 (the name and form are those of TFDS)
        SstConfig(
            name="sst2",
            description="Two classes, trained on phrases.",
            expected={**_SST2_SENTENCES, "train": 76_961},
        ),
        SstConfig(
            name="sst5",
            description="Five classes, trained on phrases.",
            classes="sst5",
            expected={**_SST5_SENTENCES, "train": 156_817},
        ),
        SstConfig(
            name="sst2_sentences",
            description="Two classes, sentences only.",
            phrases=False,
            expected=_SST2_SENTENCES,
        ),
        SstConfig(
            name="sst5_sentences",
            description="Five classes, sentences only.",
            classes="sst5",
            phrases=False,
            expected=_SST5_SENTENCES,
        ),
    ]

    def _info(self) -> tfds.core.DatasetInfo:
        names = list(sst.CLASS_NAMES[self.builder_config.classes])
        return self.dataset_info_from_configs(
            description="Stanford Sentiment Treebank, from the official trees.",
            homepage="https://nlp.stanford.edu/sentiment/",
            features=tfds.features.FeaturesDict(
                {"text": tfds.features.Text(), "label": tfds.features.ClassLabel(names=names)}
            ),
            supervised_keys=("text", "label"),
        )

    def _split_generators(self, dl_manager: tfds.download.DownloadManager) -> dict[str, Any]:
        config = self.builder_config
        place = official_data(dl_manager, sst.LAYOUT)
        dataset = sst.load_sst(config.classes, place, phrases=config.phrases)
        check_sizes(dataset, config.expected, place, sst.LAYOUT.instructions())
        return {name: self._generate_examples(split) for name, split in dataset.splits.items()}

    def _generate_examples(self, split: Split) -> Iterator[tuple[int, dict[str, Any]]]:
        for index, (text, label) in enumerate(zip(split.texts, split.targets, strict=True)):
            yield index, {"text": text, "label": int(label)}
