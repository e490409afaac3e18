"""What a model attends to: computations, pictures, pages, and TensorBoard logs of them.

Nothing here loads TensorFlow or Matplotlib before it is needed.
"""

from dsa_keras.inspection.explanation import Explanation, explain
from dsa_keras.inspection.trace import Trace, trace

__all__ = ["Explanation", "Trace", "explain", "trace"]
