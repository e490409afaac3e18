"""The model card of a run: what it is, how it was made, how good it is, how to use it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dsa_keras.runs.config import RunConfig


def model_card(path: Path, config: RunConfig, records: Sequence[dict[str, Any]]) -> str:
    """Markdown for the run's `README.md`."""
    model, training, data = config.model, config.training, config.data
    objective, inputs = model.objective, model.inputs
    monitor = config.monitor
    best = monitor.best(records)
    sizes = ", ".join(f"{name} {count:,}" for name, count in data["examples"].items())
    kind = "trained" if model.train_embeddings else "fixed"
    words = f"{kind}, random at the start"
    if config.vector_files:
        covered = config.vectors["token_coverage"]
        files = ", ".join(config.vector_files)
        words = f"{kind}, from {files} ({covered:.1%} of the running words found)"
    when = f"epoch {best['epoch']} of {len(records)}"
    kept = "a moving average, as it was after" if training.averaging else "those of"
    settings = "\n".join(
        f"| {name} | {value} |" for name, value in config.recipe.hyper_parameters().items()
    )
    versions = ", ".join(f"{name} {version}" for name, version in config.versions.items())
    return f"""# {path.name}: {model.encoder.name} on {config.task}

{objective.summary()}

| | |
|---|---|
| {monitor.title} | {best[monitor.key]:.4f} ({when}) |
| training {objective.watched} then | {best[f"train_{objective.watched}"]:.4f} |
| data | {config.task}: {sizes} |
| word vectors | {words} |
| seed | {training.seed} |
| made with | {versions} |

The weights kept are {kept} the epoch with the best {monitor.title}. The test split
was not looked at in training.

## Use

```bash
dsa-keras predict {path} {inputs.example_arguments}
dsa-keras evaluate {path}
tensorboard --logdir {path}/logs
```

```python
import dsa_keras

model = dsa_keras.load("{path}")
model.predict({inputs.example_python})
```

## Settings

| setting | value |
|---|---|
{settings}
"""
