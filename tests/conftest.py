"""What every test starts from: quiet TensorFlow, the same random numbers, float32."""

from __future__ import annotations

import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
# Two test processes share two cores.
os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "1")

import pytest
from hypothesis import HealthCheck, settings

# The same examples on every machine; a failure prints what reproduces it.
settings.register_profile(
    "quick",
    deadline=None,
    derandomize=True,
    max_examples=15,
    print_blob=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
settings.load_profile("quick")

# Left to `make test-all`, because a quicker test shows the same in another form.
SLOW = (
    "test_export_onnx.py::test_litert_answers_as_keras_does[pair]",
    "test_export_saved_model.py::test_every_encoder_is_exported[bilstm",
    "test_export_saved_model.py::test_every_encoder_is_exported[dsa-multiple]",
    "test_export_saved_model.py::test_saved_model_cli_as_the_readme_prints_it",
    "test_export_saved_model.py::test_word_vectors_in_fewer_bits[float16",
    "test_export_verify.py::test_all_ways_agree[pair]",
    "test_inspection.py::test_the_command_line_inspects_pairs_and_compares",
    "test_models.py::test_files_and_clones_give_the_same_answers[bilstm-self-attention]",
    "test_models.py::test_files_and_clones_give_the_same_answers[dsa-multiple]",
    "test_models.py::test_files_and_clones_give_the_same_answers[self-attention]",
    "test_models.py::test_mixed_precision[bilstm",
    "test_models.py::test_mixed_precision[dsa-multiple",
    "test_models.py::test_mixed_precision[self-attention",
    "test_models.py::test_training_lowers_the_loss[bilstm-padded]",
    "test_models.py::test_training_lowers_the_loss[bilstm-self-attention-padded]",
    "test_models.py::test_training_lowers_the_loss[cnn-padded]",
    "test_models.py::test_training_lowers_the_loss[dsa-multiple-padded]",
    "test_models.py::test_training_lowers_the_loss[self-attention-padded]",
    "test_models.py::test_xla_agrees_and_trains[bilstm",
    "test_models.py::test_xla_agrees_and_trains[cnn",
    "test_models.py::test_xla_agrees_and_trains[dsa-multiple-packed pairs]",
    "test_models.py::test_xla_agrees_and_trains[dsa-single-packed]",
    "test_models.py::test_xla_agrees_and_trains[self-attention-packed]",
    "test_serve_command.py::test_serves_until_it_is_told_to_stop_and_finishes_what_it_began[2]",
    "test_train_command.py::test_seeds_resume_and_compare",
    "test_training.py::test_every_encoder_trains_on_sentences[bilstm-self-attention]",
    "test_training.py::test_every_encoder_trains_on_sentences[dsa-multiple]",
    "test_training.py::test_pairs_train[dsa-multiple]",
    "test_training.py::test_the_same_seed_trains_the_same_and_another_does_not",
    "test_tuning_processes.py::test_chief_and_workers",
    "test_tuning_search.py::test_hyperband_goes_on_with_the_run_it_promotes",
    "test_tuning_search.py::test_pairs_and_a_process_that_keeps_dying",
)

# Whole files go to one of two processes: those that take longest first, so that neither waits in
# the end for the other's last file.
LONGEST = (
    "test_training.py",
    "test_models.py",
    "test_export_saved_model.py",
    "test_tuning_search.py",
    "test_resume.py",
    "test_tuning_processes.py",
    "test_layers.py",
    "test_export_verify.py",
    "test_inspection.py",
    "test_export_onnx.py",
    "test_commands.py",
    "test_tensorboard.py",
    "test_averaging.py",
    "test_serve_command.py",
)


def pytest_collection_modifyitems(items):
    """Marks the tests of `SLOW`, and brings the `LONGEST` files forward."""
    items.sort(
        key=lambda item: (
            LONGEST.index(item.path.name) if item.path.name in LONGEST else len(LONGEST)
        )
    )
    for item in items:
        if any(name in item.nodeid for name in SLOW):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(autouse=True)
def _same_start():
    """Seeds Keras before, and restores its dtype policy after a test; others never load it."""
    keras = sys.modules.get("keras")
    if keras is not None:
        keras.utils.set_random_seed(1)
        keras.config.set_dtype_policy("float32")
    yield
    if keras is not None:
        keras.config.set_dtype_policy("float32")


@pytest.fixture
def run(capsys):
    """Runs `python -m dsa_keras`; gives exit code, standard output and standard error."""
    from dsa_keras.commands.main import main

    def call(*arguments):
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as stopped:
            code = stopped.code
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return call


@pytest.fixture
def refused(run):
    """Runs a command that must fail with one line and exit code 2; gives that line."""

    def call(*arguments):
        code, _, error = run(*arguments)
        assert code == 2, error
        assert error.count("\n") == 1, error
        return error

    return call
