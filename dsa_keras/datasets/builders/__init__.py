"""SST and SNLI as TensorFlow Datasets builders; importing this package registers them.

```python
import dsa_keras.datasets.builders
import tensorflow_datasets as tfds

config = tfds.download.DownloadConfig(manual_dir="data")
splits = tfds.load("dsa_sst/sst2", download_and_prepare_kwargs={"download_config": config})
```

The names start with `dsa_` because TFDS has an `snli` of its own, which keeps rows without a label.
Needs the extra `datasets` of this project.
"""

from __future__ import annotations

from dsa_keras.datasets.builders.snli import DsaSnli, SnliConfig
from dsa_keras.datasets.builders.sst import DsaSst, SstConfig

__all__ = ["DsaSnli", "DsaSst", "SnliConfig", "SstConfig"]
