"""The model card of a run: what it is, how it was made, how good it is, how to use it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dsa_keras.training.run import Run, RunConfig


def model_card(run: Run, config: RunConfig, records: Sequence[dict[str, Any]]) -> str:
    """Markdown for the run's `README.md`."""
    best = max(records, key=lambda record: record["dev_accuracy"])
    data, training = config.data, config.training
    sizes = ", ".join(f"{name} {count:,}" for name, count in data["examples"].items())
    files = config.vectors.get("files") or []
    kind = "trained" if config.model.train_embeddings else "fixed"
    words = f"{kind}, random at the start"
    if files:
        covered = config.vectors["token_coverage"]
        words = f"{kind}, from {', '.join(files)} ({covered:.1%} of the running words found)"
    example = '"first sentence" "second sentence"' if config.is_pair else '"your sentence"'
    call = '[("a premise", "a hypothesis")]' if config.is_pair else '["your sentence"]'
    kept = "a moving average, as it was after" if training.averaging else "those of"
    settings = "\n".join(
        f"| {name} | {value} |"
        for part in (config.model.to_dict(), training.to_dict())
        for name, value in part.items()
    )
    versions = ", ".join(f"{name} {version}" for name, version in config.versions.items())
    return f"""# {run.path.name}: {config.model.encoder} on {config.task}

Classes: {", ".join(config.class_names)}.

| | |
|---|---|
| dev accuracy | {best["dev_accuracy"]:.4f} (epoch {best["epoch"]} of {len(records)}) |
| training accuracy then | {best["train_accuracy"]:.4f} |
| data | {config.task}: {sizes} |
| word vectors | {words} |
| seed | {training.seed} |
| made with | {versions} |

The weights kept are {kept} the epoch with the best dev accuracy. The test split
was not looked at in training.

## Use

```bash
python -m dsa_keras predict {run.path} {example}
python -m dsa_keras evaluate {run.path} --split test
tensorboard --logdir {run.path}/logs
```

```python
import dsa_keras

model = dsa_keras.load("{run.path}")
model.predict({call})
```

## Settings

| setting | value |
|---|---|
{settings}
"""
