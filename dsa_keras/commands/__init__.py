"""The command line: a module per command, each with `add_parser` and `run`."""
