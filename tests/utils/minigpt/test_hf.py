"""MiniGPT in Hugging Face's form: the same logits, from a local folder, and no network."""

import subprocess
import sys

import pytest
import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer as TheirTokenizer
from transformers import AutoModelForCausalLM, AutoTokenizer, GPT2LMHeadModel

from utils.minigpt import WITHOUT_IMPERFECT, generate, hf, load_minigpt, load_tokenizer
from utils.minigpt.weights import WEIGHTS

pytestmark = pytest.mark.slow(8)

PROMPT = "<bos> <es> hablar <past> yo"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return hf.save_folder(tmp_path_factory.mktemp("hf") / "minigpt")


@pytest.mark.parametrize("path", [WEIGHTS, WITHOUT_IMPERFECT], ids=["the model", "the small one"])
def test_the_logits_are_minigpts(path):
    model = load_minigpt(path)
    tokens = torch.randint(600, (3, 32), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        torch.testing.assert_close(hf.hf_model(model)(tokens).logits, model(tokens))


def test_the_auto_classes_read_the_folder(folder):
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder)
    assert type(model) is hf.MiniGPTForCausalLM
    asked = tokenizer([PROMPT, "<bos> <en> <past> she"], return_tensors="pt", padding=True)
    assert asked["input_ids"][0].tolist() == load_tokenizer().encode(PROMPT)
    assert asked["attention_mask"].tolist() == [[1, 1, 1, 1, 1], [0, 1, 1, 1, 1]]
    said = model.generate(**asked, do_sample=False, max_new_tokens=10)
    text = tokenizer.decode(said[0, 4:], skip_special_tokens=True)
    assert text.replace(" .", ".") == generate("yo", verb="hablar", tense="past")
    words = TheirTokenizer.from_file(str(folder / "tokenizer.json"))
    assert words.encode("yo hablé").ids == load_tokenizer().encode("yo hablé")


def test_attention_weights_are_given_where_they_are_computed(folder):
    model = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager")
    tokens = torch.tensor([load_tokenizer().encode(PROMPT)])
    shapes = [a.shape for a in model(tokens, output_attentions=True).attentions]
    assert shapes == [(1, 4, 5, 5)] * 2


def test_gpt_2s_own_class_drops_the_bias_without_an_error(folder):
    assert "lm_head.bias" in load_file(folder / "model.safetensors")
    model, report = GPT2LMHeadModel.from_pretrained(folder, output_loading_info=True)
    assert report["unexpected_keys"] == {"lm_head.bias"}
    assert model.lm_head.bias is None


def test_a_mistyped_folder_is_an_error_and_no_network_is_asked():
    code = (
        "import socket\n"
        "socket.getaddrinfo = socket.socket.connect = lambda *a, **k: print('ASKED', a)\n"
        "from utils.minigpt import hf\n"
        "from transformers import AutoModelForCausalLM\n"
        "AutoModelForCausalLM.from_pretrained('minigptt')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "OSError" in done.stderr
    assert done.stdout == ""


def test_the_seed_is_not_used():
    torch.manual_seed(1)
    hf.hf_model()
    spent = torch.rand(1)
    torch.manual_seed(1)
    assert torch.equal(spent, torch.rand(1))
