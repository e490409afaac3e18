"""`verify` compares every way to the answers, and notices when one is off."""

from __future__ import annotations

import keras
import numpy as np
import pytest
from exported import CASES, case, random_run
from fresh_python import loaded_after
from slow_parameters import some_slow

from dsa_keras.errors import DataError
from export.main import main
from export.verify import Difference, Report, _distance, read_texts, verify, version_folder


@pytest.mark.parametrize("name", some_slow(CASES, {"pair"}))
def test_all_ways_agree(name, tmp_path_factory, tmp_path, capsys):
    from export.onnx_export import export_onnx

    one = case(tmp_path_factory, name)
    export_onnx(one.run, tmp_path / "model.onnx")
    arguments = ["verify", str(one.version.parent), "--run", str(one.run)]
    assert main([*arguments, "--onnx", str(tmp_path / "model.onnx")]) == 0
    printed = capsys.readouterr().out
    assert "all agree" in printed
    for pair in ("keras - tensorflow", "keras - c++", "tensorflow - serve", "c++ - onnx"):
        assert f"\n{pair}" in printed
    for signature in ("serving_default", "embed", "attention", "tokens"):
        assert signature in printed


def test_another_run_is_noticed(tmp_path_factory, tmp_path, capsys):
    one = case(tmp_path_factory, "single")
    keras.utils.set_random_seed(2)  # every test starts from 1
    other = random_run(tmp_path / "other", **CASES["single"])
    (tmp_path / "texts.txt").write_text("a good film\n\nbad\n" * 15)
    arguments = ["verify", str(one.version), "--run", str(other), "--no-serve"]
    assert main([*arguments, "--file", str(tmp_path / "texts.txt")]) == 1
    printed = capsys.readouterr().out
    assert "they DIFFER" in printed
    assert "45 texts" in printed
    rows = {line.split("  ")[0]: line for line in printed.splitlines()}
    assert "!" in rows["keras - tensorflow"]
    assert "!" not in rows["tensorflow - c++"]


def test_another_precision_is_shown_but_not_judged(tmp_path_factory, tmp_path):
    from export.saved_model import export_saved_model

    run = case(tmp_path_factory, "single").run
    exported = export_saved_model(run, tmp_path / "model", precision="int8")
    report = verify(exported.path, run_dir=run, serve=False)
    off = [one for one in report.differences if one.ways[0] == "keras"]
    assert max(one.largest for one in off) > 1e-4
    assert report.holds
    assert "in brackets" in report.table()


def test_the_cpp_loader_answers_any_bytes_without_python_tensorflow(tmp_path_factory):
    from export.ways import by_cpp, by_tensorflow

    folder = case(tmp_path_factory, "single").version
    texts = ["", "good film", "a" * 100_000, "good\x00film", "naïve 東京"]
    requests = [{"serving_default": {"text": texts}}, {"embed": {"text": texts[:1]}}]
    got, expected = by_cpp(folder, requests), by_tensorflow(folder, requests)
    for one, other in zip(got, expected, strict=True):
        for name, outputs in other.items():
            for key, value in outputs.items():
                assert _distance(one[name][key], value) <= 1e-6


def test_mistakes_are_said_in_one_line(tmp_path_factory, tmp_path, capsys):
    assert main(["verify", str(tmp_path)]) == 2
    assert "has no version" in capsys.readouterr().err
    folder = str(case(tmp_path_factory, "single").version)
    assert main(["verify", folder, "--onnx", "gone.onnx", "--no-serve"]) == 2
    assert "gone.onnx: no such file" in capsys.readouterr().err
    assert main(["verify", folder, "--file", "gone.txt"]) == 2
    assert "gone.txt: cannot be read" in capsys.readouterr().err


def test_commands_tell_mistakes_before_tensorflow_loads(tmp_path):
    (tmp_path / "model" / "1").mkdir(parents=True)
    (tmp_path / "taken.onnx").touch()
    script = (
        "import os\n"
        "from export.main import main\n"
        f"os.chdir({str(tmp_path)!r})\n"
        "for command in ('saved-model no-run --out new', 'onnx no-run --out new.onnx',\n"
        "        'litert no-run --out new.tflite', 'saved-model no-run --out model --version 1',\n"
        "        'onnx no-run --out taken.onnx', 'verify no-model', 'verify model --run no-run',\n"
        "        'verify model --onnx gone.onnx'):\n"
        "    assert main(command.split()) == 2, command"
    )
    assert loaded_after(script, ("tensorflow", "keras")) == []


def test_the_newest_version_is_by_number(tmp_path):
    for name in ("2", "10", "9", ".11-x", "x12"):
        (tmp_path / name).mkdir()
    assert version_folder(tmp_path) == tmp_path / "10"


def test_pairs_are_read_with_a_tab(tmp_path):
    file = tmp_path / "pairs.tsv"
    file.write_text("a man\ta woman\nno tab\n")
    with pytest.raises(DataError, match="line 2: is not a pair"):
        read_texts(file, is_pair=True)
    assert read_texts(file, is_pair=False) == ["a man\ta woman", "no tab"]


def test_what_counts_as_a_difference():
    assert _distance(np.array([1.0, 2.0]), np.array([1.0, 2.5])) == 0.5
    assert _distance(np.array([1.0]), np.array([np.nan])) == np.inf
    assert _distance(np.zeros((2, 1)), np.zeros((2, 2))) == np.inf
    assert _distance(np.array(["a"], object), np.array(["b"], object)) == np.inf
    assert _distance(np.zeros((0, 2)), np.zeros((0, 2))) == 0
    assert Report(1, [Difference(("a", "b"), "embed", 1e-5, True)]).holds
    assert not Report(1, [Difference(("a", "b"), "embed", 1.1e-5, True)]).holds
    assert Report(1, [Difference(("a", "b"), "embed", 1.0, False)]).holds
