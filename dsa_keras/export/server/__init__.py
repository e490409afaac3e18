"""A stand-in for TensorFlow Serving on one machine: its REST paths and its gRPC services.

Production is TensorFlow Serving itself; this answers the same requests for people without Docker.
One asyncio loop owns all state (models, versions, the queue), so nothing needs a lock; TensorFlow
runs in a small pool of threads. Read in this order: `app` (the life of a server), `models`
(version folders come and go), `signatures` (a loaded SavedModel), `batching` (requests run
together), `rest` and `grpc_service` (the two ways in).
"""
