"""The paper's optimizers, with PyTorch's meaning of their settings.

PyTorch's `weight_decay` is coupled: the weight times `l2` is added to the gradient before Adam or
Adadelta looks at it. Keras's is not. The gradient is seen here anyway, so its norm is kept for the
log too.
"""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from dsa_keras.config import TrainingConfig
from dsa_keras.keras_private import slots
from dsa_keras.layers.checks import REGISTERED_PACKAGE


class _CoupledL2:
    """Adds `l2 * weight` to every gradient, and keeps the mean norm of the gradients."""

    def __init__(self, *args: Any, l2: float = 0.0, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.l2 = l2

    def build(self, variables: Any) -> None:
        """Creates the variables of the optimizer and of the gradient's norm."""
        super().build(variables)  # type: ignore[misc]
        # Behind a function: Keras would take a list of variables for some of the optimizer's own.
        self.trained = lambda: variables
        self.norm_total = self.add_variable((), dtype="float32", name="norm_total")  # type: ignore[attr-defined]
        self.norm_count = self.add_variable((), dtype="float32", name="norm_count")  # type: ignore[attr-defined]

    def apply(self, grads: Any, trainable_variables: Any = None) -> Any:
        """Updates the variables by the gradients plus `l2` times the variables."""
        if trainable_variables is None:
            trainable_variables = self.trained()
        elif not self.built:  # type: ignore[attr-defined]
            with tf.init_scope():
                self.build(trainable_variables)
        # Gradients of replicas are added up after this, so each brings its share.
        strategy = tf.distribute.get_strategy()
        share = self.l2 / strategy.num_replicas_in_sync
        norm = tf.linalg.global_norm([grad for grad in grads if grad is not None])
        if strategy.num_replicas_in_sync == 1:
            self.norm_total.assign_add(norm)
            self.norm_count.assign_add(1.0)
        grads = [
            grad if grad is None else grad + tf.cast(share, grad.dtype) * variable.value
            for grad, variable in zip(grads, trainable_variables, strict=True)
        ]
        return super().apply(grads, trainable_variables)  # type: ignore[misc]

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments that make this optimizer again."""
        return {**super().get_config(), "l2": self.l2}  # type: ignore[misc]


@keras.saving.register_keras_serializable(package=REGISTERED_PACKAGE)
class AdamL2(_CoupledL2, keras.optimizers.Adam):
    """Adam with coupled L2, as PyTorch's `Adam(weight_decay=l2)`; it has no `amsgrad`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.amsgrad:
            raise ValueError("AdamL2 has no `amsgrad`: leave it out, or use keras.optimizers.Adam.")

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        """The update as one operation, which reads and writes every weight once."""
        moments = slots(self, variable, "_momentums", "_velocities")
        if moments is None:
            super().update_step(gradient, variable, learning_rate)
            return
        kind = variable.dtype
        step = tf.cast(self.iterations.value, kind) + 1
        powers = [tf.cast(beta, kind) ** step for beta in (self.beta_1, self.beta_2)]
        tf.raw_ops.ResourceApplyAdam(
            var=_handle(variable),
            m=_handle(moments[0]),
            v=_handle(moments[1]),
            beta1_power=powers[0],
            beta2_power=powers[1],
            lr=tf.cast(learning_rate, kind),
            beta1=tf.cast(self.beta_1, kind),
            beta2=tf.cast(self.beta_2, kind),
            # PyTorch adds epsilon after the second moment's correction, TensorFlow before it.
            epsilon=tf.cast(self.epsilon, kind) * tf.sqrt(1 - powers[1]),
            grad=tf.cast(gradient, kind),
        )


@keras.saving.register_keras_serializable(package=REGISTERED_PACKAGE)
class AdadeltaL2(_CoupledL2, keras.optimizers.Adadelta):
    """Adadelta with coupled L2, as PyTorch's `Adadelta(weight_decay=l2)`."""

    def update_step(self, grad: Any, variable: Any, learning_rate: Any) -> None:
        """The update as one operation, which reads and writes every weight once."""
        kept = slots(self, variable, "_accumulated_grads", "_accumulated_delta_vars")
        if kept is None:
            super().update_step(grad, variable, learning_rate)
            return
        tf.raw_ops.ResourceApplyAdadelta(
            var=_handle(variable),
            accum=_handle(kept[0]),
            accum_update=_handle(kept[1]),
            lr=tf.cast(learning_rate, variable.dtype),
            rho=tf.cast(self.rho, variable.dtype),
            epsilon=tf.cast(self.epsilon, variable.dtype),
            grad=tf.cast(grad, variable.dtype),
        )


def _handle(variable: Any) -> Any:
    """TensorFlow's name of a variable, whether Keras has wrapped it or not."""
    return (variable.value if isinstance(variable, keras.Variable) else variable).handle


def build_optimizer(config: TrainingConfig) -> keras.optimizers.Optimizer:
    """The optimizer that a config asks for."""
    if config.optimizer == "adam":
        return AdamL2(config.learning_rate, epsilon=config.epsilon, l2=config.l2)
    return AdadeltaL2(config.learning_rate, rho=config.rho, epsilon=config.epsilon, l2=config.l2)


def take_gradient_norm(optimizer: keras.optimizers.Optimizer) -> float | None:
    """The mean gradient norm since the last call, or None where it is not known."""
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    count = float(inner.norm_count.numpy())
    norm = float(inner.norm_total.numpy()) / count if count else None
    inner.norm_total.assign(0.0)
    inner.norm_count.assign(0.0)
    return norm
