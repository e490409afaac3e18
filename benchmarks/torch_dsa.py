"""Single DSA in plain PyTorch, written for the comparison in `benchmarks.speed`.

The way one writes it in PyTorch: `nn.Conv1d` on `(batch, features, words)`, `nn.Linear`,
`nn.Dropout`, masks by multiplication. `Classifier` takes padded ids; with segment ids it takes
sentences packed into one row, with two empty positions after each so that convolutions stay apart.
Parameters are in the order of the Keras model, so `copy_weights` can carry them over.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812


class Composite(nn.Module):
    """h: convolution, dropout, LeakyReLU; zero where there is no word."""

    def __init__(self, features: int, filters: int, kernel_size: int, dropout: float) -> None:
        super().__init__()
        self.convolution = nn.Conv1d(features, filters, kernel_size, padding=kernel_size // 2)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Computes h(x)."""
        return F.leaky_relu(self.dropout(self.convolution(x))) * mask


class DenseConvBlock(nn.Module):
    """Phi_k of Eq. 2-4."""

    def __init__(self, features: int, kernel_size: int, dropout: float) -> None:
        super().__init__()
        self.first = Composite(features, 150, 1, dropout)
        self.dense = nn.ModuleList(
            Composite(150 + 75 * number, 75, kernel_size, dropout) for number in range(4)
        )

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Computes Phi_k(x)."""
        features = self.first(x, mask)
        for h in self.dense:
            features = torch.cat([h(features, mask), features], dim=1)
        return features


class Encoder(nn.Module):
    """Embedding, two dense blocks, compression, dynamic self-attention with m = 1."""

    def __init__(self, vectors: np.ndarray, embedding_dropout: float, dropout: float) -> None:
        super().__init__()
        self.embedding = nn.Embedding.from_pretrained(torch.from_numpy(vectors), freeze=True)
        self.dropout = nn.Dropout(embedding_dropout)
        features = vectors.shape[1]
        self.blocks = nn.ModuleList(DenseConvBlock(features, k, dropout) for k in (3, 5))
        self.compression = Composite(900 + features, 300, 1, dropout)
        self.projection = nn.Linear(300, 600)

    def forward(self, ids: Tensor, segments: Tensor | None = None, count: int = 0) -> Tensor:
        """Vectors of padded sentences, or of `count` packed ones."""
        mask = (ids > 0).unsqueeze(1).float()
        x0 = self.dropout(self.embedding(ids)).transpose(1, 2) * mask
        parts = torch.cat([*(block(x0, mask) for block in self.blocks), x0], dim=1)
        xc = F.normalize(self.compression(parts, mask), dim=1).transpose(1, 2)
        words = F.leaky_relu(self.projection(xc))
        if segments is None:
            return self.route(words, ids > 0)
        return self.route_packed(words[0], segments[0], count)

    def route(self, words: Tensor, mask: Tensor) -> Tensor:
        """Algorithm 1 on padded sentences, r = 2."""
        low = torch.finfo(words.dtype).min
        q = torch.zeros(words.shape[:2])
        for iteration in range(2):
            a = torch.softmax(q.masked_fill(~mask, low), dim=1)
            z = torch.tanh(torch.bmm(a.unsqueeze(1), words).squeeze(1))
            if iteration == 0:
                q = q + torch.bmm(words, z.unsqueeze(2)).squeeze(2)
        return z

    def route_packed(self, words: Tensor, segments: Tensor, count: int) -> Tensor:
        """Algorithm 1 on one row of many sentences; segment 0 is what lies between them."""
        real = (segments > 0).float()
        q = torch.zeros(len(words))
        for iteration in range(2):
            high = torch.full((count + 1,), -torch.inf).scatter_reduce(
                0, segments, q.detach(), "amax"
            )
            a = torch.exp(q - high[segments]) * real
            total = torch.zeros(count + 1).index_add(0, segments, a)
            a = a / total.clamp_min(1e-30)[segments]
            sums = torch.zeros(count + 1, words.shape[1]).index_add(
                0, segments, a.unsqueeze(1) * words
            )
            z = torch.tanh(sums)
            if iteration == 0:
                q = q + (words * z[segments]).sum(1)
        return z[1:]


class Classifier(nn.Module):
    """Encoder and head, for one sentence or for pairs."""

    def __init__(
        self,
        vectors: np.ndarray,
        num_classes: int,
        embedding_dropout: float,
        dropout: float,
        head_dropout: float,
        hidden_layers: int,
        pair: bool,
    ) -> None:
        super().__init__()
        self.pair = pair
        self.encoder = Encoder(vectors, embedding_dropout, dropout)
        layers: list[nn.Module] = []
        size = 2400 if pair else 600
        for _ in range(hidden_layers):
            layers += [nn.BatchNorm1d(size), nn.Dropout(head_dropout), nn.Linear(size, 300)]
            layers.append(nn.LeakyReLU())
            size = 300
        self.head = nn.Sequential(*layers, nn.Linear(size, num_classes))

    def forward(self, *ids: Tensor) -> Tensor:
        """Logits of padded sentences, or of padded premises and hypotheses."""
        return self.classify(*(self.encoder(one) for one in ids))

    def packed(self, ids: Tensor, segments: Tensor, index: Tensor, count: int) -> Tensor:
        """Logits of a packed batch; `index` says which sentences each example is about."""
        vectors = self.encoder(ids, segments, count)[index]
        return self.classify(*(vectors.unbind(1) if self.pair else [vectors]))

    def classify(self, *vectors: Tensor) -> Tensor:
        """Logits by the vectors of sentences, or of premises and hypotheses."""
        if not self.pair:
            return self.head(vectors[0])
        p, h = vectors
        return self.head(torch.cat([h, p, (h - p).abs(), h * p], dim=1))


def copy_weights(model: Classifier, weights: Sequence[np.ndarray]) -> None:
    """Puts the trainable weights of a Keras classifier, in their order, into the model."""
    targets = [one for one in model.parameters() if one.requires_grad]
    for target, value in zip(targets, weights, strict=True):
        # Keras has features before filters, and the words of a kernel first of all.
        if value.ndim == 2 and target.ndim == 3:
            value = value[np.newaxis]
        turned = value.transpose(*reversed(range(value.ndim)))
        with torch.no_grad():
            target.copy_(torch.from_numpy(np.ascontiguousarray(turned)))
