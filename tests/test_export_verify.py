"""`verify` compares every way to the answers, and notices when one is off."""

from __future__ import annotations

import keras
import numpy as np
import pytest
from exported import CASES, case, random_run
from fresh_python import loaded_after
from one_command import export as main
from slow_parameters import some_slow

from dsa_keras.errors import DataError, RunError
from dsa_keras.export.verify import (
    Difference,
    Report,
    _distance,
    read_texts,
    verify,
    version_folder,
)
from dsa_keras.inputs import PAIR, SENTENCE


@pytest.mark.parametrize("name", some_slow(CASES, {"pair", "number"}))
def test_all_ways_agree(name, tmp_path_factory, tmp_path, capsys):
    from dsa_keras.export.onnx_export import export_onnx

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
    from dsa_keras.export.saved_model import export_saved_model

    run = case(tmp_path_factory, "single").run
    exported = export_saved_model(run, tmp_path / "model", precision="int8")
    report = verify(exported.path, run_dir=run, serve=False)
    off = [one for one in report.differences if one.ways[0] == "keras"]
    assert max(one.largest for one in off) > 1e-4
    assert report.holds
    assert "in brackets" in report.table()


def test_the_cpp_loader_answers_any_bytes_without_python_tensorflow(tmp_path_factory):
    from dsa_keras.export.ways import by_cpp, by_tensorflow

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
    assert "gone.txt: no such file" in capsys.readouterr().err


def test_commands_tell_mistakes_before_tensorflow_loads(tmp_path):
    (tmp_path / "model" / "1").mkdir(parents=True)
    (tmp_path / "taken.onnx").touch()
    script = (
        "import os\n"
        "from dsa_keras.commands.main import main\n"
        f"os.chdir({str(tmp_path)!r})\n"
        "for command in ('saved-model no-run --out new', 'onnx no-run --out new.onnx',\n"
        "        'litert no-run --out new.tflite', 'saved-model no-run --out model --version 1',\n"
        "        'onnx no-run --out taken.onnx', 'verify no-model', 'verify model --run no-run',\n"
        "        'verify model --onnx gone.onnx'):\n"
        "    assert main(['export', *command.split()]) == 2, command"
    )
    assert loaded_after(script, ("tensorflow", "keras")) == []


def test_the_newest_version_is_by_number(tmp_path):
    for name in ("2", "10", "9", ".11-x", "x12"):
        (tmp_path / name).mkdir()
    assert version_folder(tmp_path) == tmp_path / "10"


def test_pairs_are_read_with_a_tab(tmp_path):
    file = tmp_path / "pairs.tsv"
    file.write_text("a man\ta woman\nno tab\n")
    with pytest.raises(DataError, match="line 2: 1 sentence where this model takes two"):
        read_texts(file, PAIR)
    assert read_texts(file, SENTENCE) == ["a man\ta woman", "no tab"]
    file.write_text("a man\ta woman\n\tb\n")
    assert read_texts(file, PAIR) == [("a man", "a woman"), ("", "b")]


def test_only_line_ends_end_a_line(tmp_path):
    """As `predict --file`: str.splitlines ends lines at ten characters."""
    file = tmp_path / "texts.txt"
    odd = "a\u2028b\x85c\x0bd\x0ce\x1cf\x1dg\x1eh\u2029i\rj"
    file.write_bytes(f"\ufeff{odd}\r\n\n last".encode())
    assert read_texts(file, SENTENCE) == [odd, "", " last"]
    file.write_bytes(b"good\ncaf\xe9\n")
    with pytest.raises(DataError, match="line 2: the line is not UTF-8"):
        read_texts(file, SENTENCE)
    file.write_bytes(b"")
    with pytest.raises(DataError, match="the file is empty"):
        read_texts(file, SENTENCE)


def test_a_version_that_says_nothing_of_its_run_is_refused(tmp_path_factory, tmp_path):
    import shutil

    from dsa_keras.export.versions import MANIFEST, new_manifest

    folder = tmp_path / "1"
    shutil.copytree(case(tmp_path_factory, "single").version, folder)
    (folder / MANIFEST).unlink()
    with pytest.raises(RunError, match=r"manifest\.json: is missing"):
        verify(folder, serve=False)
    new_manifest(folder).write({"precision": "float32"})
    with pytest.raises(RunError, match="does not say 'run'"):
        verify(folder, serve=False)
    new_manifest(folder).write({"precision": "float32", "run": {"format": 99}})
    with pytest.raises(
        RunError, match=r"manifest\.json: the run it tells of cannot be: is of form"
    ):
        verify(folder, serve=False)


def test_an_onnx_file_of_another_kind_is_refused(tmp_path_factory, tmp_path, capsys):
    from dsa_keras.export.onnx_export import export_onnx

    export_onnx(case(tmp_path_factory, "number").run, tmp_path / "m.onnx")
    folder = str(case(tmp_path_factory, "single").version)
    arguments = ["verify", folder, "--no-serve", "--onnx", str(tmp_path / "m.onnx")]
    assert main(arguments) == 2
    assert "does not say what the SavedModel says" in capsys.readouterr().err
    (tmp_path / "m.vocabulary.txt").write_text("<pad>\n<unk>\nother\n")
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert "m.vocabulary.txt: is not the file that was exported" in error
    assert error.count("\n") == 1


def test_words_that_were_added_are_looked_up_in_what_is_served(tmp_path):
    """The ids that `verify` sends to `tokens` are those of the exported vocabulary."""
    from dsa_keras.data import Vocabulary
    from dsa_keras.export.saved_model import export_saved_model

    run = random_run(tmp_path / "run", files=True)
    Vocabulary(["shiny"]).save(tmp_path / "more.txt")
    (tmp_path / "vectors.txt").write_text(f"shiny {' '.join(['0.5'] * 8)}\n")
    added = {"vocabulary": tmp_path / "more.txt", "vectors": [tmp_path / "vectors.txt"]}
    exported = export_saved_model(run, tmp_path / "model", **added)
    (tmp_path / "texts.txt").write_text("shiny good\n")
    report = verify(exported.path, run_dir=run, file=tmp_path / "texts.txt", serve=False)
    off = {(*one.ways, one.signature): one for one in report.differences}
    assert report.holds
    # To Keras the word is an unknown one. So it is shown, not judged, and in both signatures alike.
    of_text, of_ids = (off["keras", "tensorflow", name] for name in ("embed", "tokens"))
    assert of_text.largest > 1e-3
    assert of_ids.largest == pytest.approx(of_text.largest)
    assert not of_text.judged


def test_what_counts_as_a_difference():
    assert _distance(np.array([0.1, 0.25]), np.array([0.1, 0.75])) == 0.5
    assert _distance(np.array([1.0, 2.0]), np.array([1.0, 2.5])) == 0.2  # 0.5 of 2.5
    assert _distance(np.array([1.0]), np.array([np.nan])) == np.inf
    assert _distance(np.zeros((2, 1)), np.zeros((2, 2))) == np.inf
    assert _distance(np.array(["a"], object), np.array(["b"], object)) == np.inf
    assert _distance(np.zeros((0, 2)), np.zeros((0, 2))) == 0
    assert Report(1, [Difference(("a", "b"), "embed", 1e-5, True)]).holds
    assert not Report(1, [Difference(("a", "b"), "embed", 1.1e-5, True)]).holds
    assert Report(1, [Difference(("a", "b"), "embed", 1.0, False)]).holds
