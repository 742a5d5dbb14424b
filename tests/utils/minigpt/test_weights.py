"""The shipped files are complete, and a damaged file gives an error that says why."""

import json
import shutil

import numpy as np
import pytest
from safetensors.numpy import save_file

from utils.minigpt import (
    WITHOUT_IMPERFECT,
    MiniGPTConfig,
    WeightsError,
    load_config,
    load_minigpt,
    load_weights,
    parameter_shapes,
    save_weights,
)
from utils.minigpt.weights import DATA, WEIGHTS, sha256

TINY = MiniGPTConfig(vocab_size=7, d_model=4, n_heads=2, n_layers=1, d_ff=6, context=3)


@pytest.fixture
def tiny():
    rng = np.random.default_rng(0)
    shapes = parameter_shapes(TINY)
    return {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "weights.safetensors"


def refusal(path):
    with pytest.raises(WeightsError) as caught:
        load_weights(path)
    message = str(caught.value)
    assert str(path.parent) in message
    assert "python -m utils.minigpt.train" in message
    return message


def test_the_shipped_files_are_small_and_load():
    sizes = {p.relative_to(DATA).as_posix(): p.stat().st_size for p in DATA.rglob("*.*")}
    second = sum(size for name, size in sizes.items() if "/" in name)
    assert sum(sizes.values()) - second < 1_000_000
    assert second < 250_000  # a model of a quarter of the size, without a tense
    assert load_config() == MiniGPTConfig()
    shapes = {name: array.shape for name, array in load_weights().items()}
    assert shapes == parameter_shapes(MiniGPTConfig())


def test_the_second_model_has_a_manifest_and_its_checksum():
    config = load_config(WITHOUT_IMPERFECT)
    manifest = json.loads(WITHOUT_IMPERFECT.with_name("manifest.json").read_text(encoding="utf-8"))
    assert MiniGPTConfig(**manifest["model"]) == config != MiniGPTConfig()
    assert manifest["command"].endswith("--without imperfect")
    assert list(manifest["files"]) == ["weights.safetensors"]
    shapes = {name: array.shape for name, array in load_weights(WITHOUT_IMPERFECT).items()}
    assert shapes == parameter_shapes(config)  # and the checksum fits, or it would have raised


def test_the_manifest_states_the_files_and_the_sizes():
    manifest = json.loads((DATA / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["parameters"] == 179_544
    assert MiniGPTConfig(**manifest["model"]) == MiniGPTConfig()
    assert set(manifest["files"]) == {"weights.safetensors", "tokenizer.json", "lines.safetensors"}
    for name, stated in manifest["files"].items():
        assert stated == {"sha256": sha256(DATA / name), "bytes": (DATA / name).stat().st_size}


def test_a_file_written_by_safetensors_is_read(path, tiny):
    config = json.dumps(TINY.__dict__)
    save_file(tiny, path, metadata={"config": config, "format": "pt"})
    assert load_config(path) == TINY
    assert all(np.array_equal(array, tiny[name]) for name, array in load_weights(path).items())


def test_weights_may_be_written_to_and_the_same_arrays_give_the_same_bytes(path, tiny):
    save_weights(path, tiny, TINY)
    first = path.read_bytes()
    loaded = load_weights(path)
    loaded["lm_head.bias"][0] = 1
    save_weights(path, dict(reversed(tiny.items())), TINY)
    assert path.read_bytes() == first


def test_a_missing_file_is_named(path):
    with pytest.raises(FileNotFoundError, match=r"weights\.safetensors.*utils\.minigpt\.train"):
        load_minigpt(path)


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: b"version https://git-lfs",
        lambda data: b"\xff" * 500,
        lambda data: data[:-10],
        lambda data: data.replace(b'"shape":[7,4]', b'"shape":[7,5]', 1),
        lambda data: data.replace(b'"data_offsets":[0,', b'"data_offsets":[4,', 1),
    ],
)
def test_a_damaged_file_is_called_so(path, tiny, damage):
    save_weights(path, tiny, TINY)
    path.write_bytes(damage(path.read_bytes()))
    assert "is damaged" in refusal(path)


def test_a_changed_number_is_found_by_the_manifests_checksum(tmp_path):
    for file in DATA.iterdir():
        if file.is_file():
            shutil.copy(file, tmp_path)
    path = tmp_path / WEIGHTS.name
    assert load_config(path) == MiniGPTConfig()
    data = bytearray(path.read_bytes())
    data[-300_000] ^= 1
    path.write_bytes(data)
    assert "expected SHA-256" in refusal(path)
    (tmp_path / "manifest.json").write_text("{}")
    assert "states no checksum" in refusal(path)


def change(tiny, name, array):
    return {**tiny, name: array}


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (
            lambda t: {k: v for k, v in t.items() if k != "lm_head.bias"},
            "lm_head.bias: expected float32 (7,), got nothing",
        ),
        (
            lambda t: change(t, "extra", t["lm_head.bias"]),
            "extra: expected no such parameter, got float32 (7,)",
        ),
        (
            lambda t: change(t, "lm_head.weight", t["lm_head.weight"].T.copy()),
            "lm_head.weight: expected float32 (7, 4), got float32 (4, 7)",
        ),
        (
            lambda t: change(t, "final_norm.bias", np.full(4, np.nan, np.float32)),
            "final_norm.bias: expected float32 (4,), got infinity or NaN",
        ),
        (
            lambda t: change(t, "final_norm.bias", np.zeros(4, np.float16)),
            "final_norm.bias: expected float32 (4,), got float16 (4,)",
        ),
    ],
)
def test_a_file_that_does_not_fit_names_what_is_wrong(path, tiny, damage, said):
    save_file(damage(tiny), path, metadata={"config": json.dumps(TINY.__dict__)})
    assert said in refusal(path)


@pytest.mark.parametrize("metadata", [None, {"config": "{}"}, {"config": '{"vocab_size": 7}'}])
def test_a_file_without_sizes_is_refused(path, tiny, metadata):
    save_file(tiny, path, metadata=metadata)
    assert "expected metadata 'config' with an integer for each of vocab_size" in refusal(path)


def test_weights_that_do_not_fit_are_not_written(path, tiny):
    tiny.pop("lm_head.bias")
    with pytest.raises(WeightsError, match=r"lm_head\.bias: expected .* got nothing"):
        save_weights(path, tiny, TINY)
    assert not path.exists()
