"""From a run folder to files that serve: SavedModel for TF Serving, ONNX, LiteRT, and their proof.

`dsa-keras export --help` lists the commands. Nothing here loads TensorFlow before it is needed.
"""
