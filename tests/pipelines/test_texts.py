"""Tasks on texts give what transformers' pipelines give, with any arguments."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import votive

from .made import LABELS, SAID, folder, same, theirs, tokenizer, torch, transformers

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore::UserWarning:transformers.*")]

TEXTS = ["the cat sat on a mat", "my dog ran", SAID]
KINDS: dict[str, dict[str, Any]] = {
    "classes": {"num_labels": 3, "id2label": {0: "bad", 1: "fair", 2: "good"}},
    "one": {"num_labels": 1},
    "several": {"num_labels": 4, "problem_type": "multi_label_classification"},
    "values": {"num_labels": 2, "problem_type": "regression"},
}


def classifiers(name: str) -> tuple[Any, Any]:
    config = {k: v for k, v in KINDS[name].items() if k != "id2label"}
    path = folder("ForSequenceClassification", **config)
    ours, reference = votive.pipeline("text-classification", model=path), theirs("text-classification", path)
    for pipe in (ours, reference):
        if "id2label" in KINDS[name]:
            pipe.model.config.id2label = KINDS[name]["id2label"]
    return ours, reference


@pytest.mark.parametrize("name", KINDS)
def test_classes_of_texts(name: str) -> None:
    ours, reference = classifiers(name)
    for inputs in (TEXTS[0], TEXTS, {"text": TEXTS[0], "text_pair": TEXTS[1]}):
        for options in ({}, {"top_k": None}, {"top_k": 2}, {"top_k": 1}, {"function_to_apply": "sigmoid"}):
            same(ours(inputs, **options), reference(inputs, **options), f"{name} {options}")
    same(ours(TEXTS[2], truncation=True, max_length=6), reference(TEXTS[2], truncation=True, max_length=6))
    same(ours(TEXTS, batch_size=2), reference(TEXTS))
    same(list(ours(t for t in TEXTS)), list(reference(t for t in TEXTS)))
    with pytest.raises(ValueError, match="'tanh' is not known"):
        ours(TEXTS[0], function_to_apply="tanh")
    with pytest.raises(ValueError, match="give a text, or a pair"):
        ours([3])


@pytest.mark.parametrize("strategy", ["none", "simple", "first", "average", "max"])
def test_classes_of_tokens_and_the_names_that_they_make(strategy: str) -> None:
    path = folder("ForTokenClassification", num_labels=5)
    ours, reference = votive.pipeline("ner", model=path), theirs("ner", path)
    for pipe in (ours, reference):
        pipe.model.config.id2label = LABELS
    texts = [SAID, "xylophones in londoning ☃ paris"]
    options = {"aggregation_strategy": strategy}
    for inputs in (texts[0], texts, texts[1]):
        same(ours(inputs, **options), reference(inputs, **options), strategy)
        same(ours(inputs, ignore_labels=[], **options), reference(inputs, ignore_labels=[], **options), strategy)
    words = SAID.split()
    same(
        ours(words, is_split_into_words=True, **options), reference(words, is_split_into_words=True, **options), "words"
    )
    same(ours(texts, batch_size=2, **options), reference(texts, **options), "batch")
    long = " ".join([SAID] * 4)
    if strategy != "none":
        same(ours(long, stride=4, **options), reference(long, stride=4, **options), "stride")
    else:
        with pytest.raises(ValueError, match="stride needs an aggregation_strategy"):
            ours(long, stride=4)
    with pytest.raises(ValueError, match="may be none, simple"):
        ours(SAID, aggregation_strategy="best")


def test_gaps_are_filled() -> None:
    path = folder("ForMaskedLM")
    ours, reference = votive.pipeline("fill-mask", model=path), theirs("fill-mask", path)
    one, two = "the [MASK] sat on a mat", "the [MASK] sat on [MASK] mat"
    for inputs in (one, two, [one], [one, two, "my [MASK] ran to the hill and my dog ran"]):
        for options in ({}, {"top_k": 2}, {"targets": ["cat", "dog", "mat"]}, {"targets": "dog", "top_k": 9}):
            same(ours(inputs, **options), reference(inputs, **options), f"{inputs} {options}")
    same(ours([one, two], batch_size=2), reference([one, two]), "batch")
    short = {"tokenizer_kwargs": {"truncation": True, "max_length": 6}}
    same(ours(one, **short), reference(one, **short), "cut")
    with pytest.raises(ValueError, match=r"no \[MASK\] in 'the cat'"):
        ours("the cat")
    with pytest.warns(UserWarning, match="'lonmat' is no token"):
        assert ours(one, targets=["lonmat"])[0]["token_str"] == "lon"


def test_vectors_of_texts() -> None:
    path = folder("Model")
    ours, reference = votive.pipeline("feature-extraction", model=path), theirs("feature-extraction", path)
    same(ours(TEXTS[0]), reference(TEXTS[0]), "one", 3e-5)
    same(ours(TEXTS), reference(TEXTS), "several", 3e-5)
    # Padding says nothing of a text, and is left out.
    same(ours(TEXTS, batch_size=3), reference(TEXTS), "batch", 3e-5)
    options = {"truncation": True, "tokenize_kwargs": {"max_length": 5}}
    same(ours(TEXTS[2], **options), reference(TEXTS[2], **options), "cut", 3e-5)
    assert ours(TEXTS[0], return_tensors=True).shape == (1, 8, 16)


def test_classes_that_are_named_when_asked() -> None:
    path = folder("ForSequenceClassification", num_labels=3)
    ours, reference = (make("zero-shot-classification", path) for make in (_ours, theirs))
    for pipe in (ours, reference):
        pipe.model.config.id2label = {0: "contradiction", 1: "neutral", 2: "ENTAILMENT"}
        pipe.model.config.label2id = {"contradiction": 0, "neutral": 1, "ENTAILMENT": 2}
    labels = ["news", "sport", "cats"]
    for inputs in (TEXTS[0], TEXTS[:2]):
        for options in ({}, {"multi_label": True}, {"hypothesis_template": "about {} ."}):
            expected = reference(inputs, candidate_labels=labels, **options)
            same(ours(inputs, candidate_labels=labels, **options), expected, f"{options}")
            same(ours(inputs, labels, batch_size=2, **options), expected, f"batch {options}")
    same(ours(TEXTS[0], "news, sport"), reference(TEXTS[0], "news, sport"))
    same(ours(TEXTS[0], ["news"]), reference(TEXTS[0], ["news"]))
    with pytest.raises(ValueError, match="at least one"):
        ours(TEXTS[0])
    with pytest.raises(ValueError, match="for the label"):
        ours(TEXTS[0], labels, hypothesis_template="about")
    ours.model.config.id2label = {0: "a", 1: "b", 2: "c"}
    with pytest.raises(ValueError, match="begins with 'entail'"):
        ours(TEXTS[0], labels)


def _ours(task: str, path: Any, **options: Any) -> Any:
    return votive.pipeline(task, model=path, **options)


def test_texts_go_on() -> None:
    path = folder("ForCausalLM", "GPT2")
    ours, reference = _ours("text-generation", path), theirs("text-generation", path)
    plain = {"do_sample": False, "max_new_tokens": 6}
    for inputs in (TEXTS[0], TEXTS[:2]):
        for options in (
            {}, {"return_full_text": False}, {"num_beams": 3, "num_return_sequences": 2}, {"prefix": "my dog "},
            {"add_special_tokens": False}, {"skip_special_tokens": False}, {"return_tensors": True},
        ):  # fmt: skip
            got = ours(inputs, **plain, **options)
            same(got, reference(inputs, **plain, **options), f"{options}")
    same(ours(TEXTS, batch_size=3, **plain), reference(TEXTS, batch_size=3, **plain), "batch")
    stop = {"stop_sequence": reference(TEXTS[0], return_full_text=False, **plain)[0]["generated_text"].split()[1]}
    same(ours(TEXTS[0], **plain, **stop), reference(TEXTS[0], **plain, **stop), "stop")
    assert ours.generated({}) == {"max_new_tokens": 256, "do_sample": True, "temperature": 0.7, "pad_token_id": 0}
    assert ours.generated({"max_length": 9, "do_sample": False}) == {
        "max_length": 9, "do_sample": False, "pad_token_id": 0,
    }  # fmt: skip
    own = votive.generation.GenerationConfig(max_new_tokens=6, do_sample=False)
    same(ours(TEXTS[0], generation_config=own), reference(TEXTS[0], **plain), "generation_config")
    hole = {"handle_long_generation": "hole", "max_new_tokens": 29, "do_sample": False}
    same(ours(TEXTS[2], **hole), reference(TEXTS[2], **hole), "hole")
    for options in ({"return_full_text": True, "return_tensors": True}, {"handle_long_generation": "cut"}):
        with pytest.raises(ValueError, match=r"not both|may be None or 'hole'"):
            ours("the cat", **options)
    with pytest.raises(ValueError, match="give a text or a conversation"):
        ours([3])


def test_conversations_go_on() -> None:
    path = folder("ForCausalLM", "GPT2")
    ours, reference = _ours("text-generation", path), theirs("text-generation", path)
    template = (
        "{% for m in messages %}{{ m.role }} {{ m.content }} {% endfor %}{% if add_generation_prompt %}news {% endif %}"
    )
    for pipe in (ours, reference):
        pipe.tokenizer.chat_template = template
    plain = {"do_sample": False, "max_new_tokens": 4}
    chat = [{"role": "user", "content": "the cat"}]
    begun = [*chat, {"role": "assistant", "content": "sat on"}]
    for inputs in (chat, begun, [chat, begun]):
        for options in ({}, {"return_full_text": False}):
            same(ours(inputs, **plain, **options), reference(inputs, **plain, **options), f"{options}")
    same(ours(begun, continue_final_message=False, **plain), reference(begun, continue_final_message=False, **plain))


def test_texts_become_others() -> None:
    path = folder("ForConditionalGeneration", "Bart")
    model = transformers.BartForConditionalGeneration.from_pretrained(path).eval()
    tok = tokenizer()
    for task, name in (
        ("text2text-generation", "generated_text"), ("summarization", "summary_text"),
        ("translation_en_to_de", "translation_text"),
    ):  # fmt: skip
        pipe = _ours(task, path)
        for text in TEXTS[:2]:
            ids = tok(text, return_tensors="pt")
            expected = model.generate(ids.input_ids, attention_mask=ids.attention_mask, max_new_tokens=8, num_beams=4)
            decoded = tok.batch_decode(expected, skip_special_tokens=True)
            assert pipe(text, max_new_tokens=8) == [{name: decoded[0]}]
        assert pipe(TEXTS, batch_size=2, max_new_tokens=5)[1] == pipe(TEXTS[1], max_new_tokens=5)
        assert len(pipe(TEXTS[0], num_beams=3, num_return_sequences=2, max_new_tokens=5)) == 2
        found = pipe(TEXTS[0], return_tensors=True, max_new_tokens=5)[0]
        assert list(found) == [name.replace("text", "token_ids")]
    pipe = _ours("summarization", path)
    pipe.model.config.extra["task_specific_params"] = {"summarization": {"prefix": "my dog ", "max_length": 7}}
    ids = tok("my dog " + TEXTS[0], return_tensors="pt")
    expected = model.generate(ids.input_ids, max_length=7, num_beams=4)
    assert pipe(TEXTS[0])[0]["summary_text"] == tok.decode(expected[0], skip_special_tokens=True)
    with pytest.raises(ValueError, match="no token for the language 'de'"):
        _ours("translation", path)(TEXTS[0], tgt_lang="de")


def spans(model: Any, question: str, context: str, longest: int) -> list[tuple[float, int, int]]:
    """Every answer of whole words by the plain definition: the product of two softmaxes over the text."""
    tok = tokenizer()
    found = tok(question, context, return_offsets_mapping=True, return_tensors="pt")
    with torch.no_grad():
        out = model(**{k: v for k, v in found.items() if k != "offset_mapping"})
    inside = np.array([s == 1 for s in found.sequence_ids(0)])
    allowed = inside | (found.input_ids[0].numpy() == tok.cls_token_id)
    odds = []
    for logits in (out.start_logits[0].numpy(), out.end_logits[0].numpy()):
        shares = np.exp(np.where(allowed, logits, -10000.0) - logits[allowed].max())
        odds.append(shares / shares.sum())
    words, places = found.word_ids(0), found.offset_mapping[0].tolist()
    answers: dict[str, list[Any]] = {}
    best = sorted(
        ((float(odds[0][i] * odds[1][j]), i, j) for i in np.flatnonzero(inside) for j in range(i, i + longest)
         if j < len(inside) and inside[j]), reverse=True,
    )  # fmt: skip
    for score, i, j in best:
        start = min(places[k][0] for k in range(len(words)) if inside[k] and words[k] == words[i])
        end = max(places[k][1] for k in range(len(words)) if inside[k] and words[k] == words[j])
        answers.setdefault(context[start:end].lower(), [0.0, start, end])[0] += score
    return sorted(((s, a, b) for s, a, b in answers.values()), reverse=True)


def test_answers_stand_in_the_text() -> None:
    path = folder("ForQuestionAnswering")
    ours = _ours("question-answering", path)
    model = transformers.BertForQuestionAnswering.from_pretrained(path).eval()
    question, context = "where ?", "my name is sarah and i live in london"
    expected = spans(model, question, context, 15)
    got = ours(question=question, context=context, top_k=100)
    assert len(got) == len(expected)
    for answer, (score, start, end) in zip(got[:5], expected[:5], strict=True):
        assert abs(answer["score"] - score) < 1e-5
        assert (answer["start"], answer["end"], answer["answer"]) == (start, end, context[start:end])
    one = ours({"question": question, "context": context})
    assert one["answer"] == ours(question=[question], context=[context])["answer"]
    several = ours(question=[question, "who ?"], context=context, batch_size=2)
    assert len(several) == 2
    alone = ours(question="who ?", context=context)
    assert several[1]["answer"] == alone["answer"]
    assert abs(several[1]["score"] - alone["score"]) < 1e-5
    # An answer may be none, and short ones are short.
    none = ours(question=question, context=context, top_k=100, handle_impossible_answer=True)
    assert sum(a["answer"] == "" for a in none) == 1
    short = spans(model, question, context, 1)
    assert abs(ours(question=question, context=context, max_answer_len=1)["score"] - short[0][0]) < 1e-5
    # A long text is read in parts, which see all of it.
    long = "the cat sat on a mat , my dog ran to hill and i live in london this is news about sport in new york"
    parts = ours(question=question, context=long, top_k=400, max_seq_len=20, doc_stride=6)
    assert all(long[a["start"] : a["end"]] == a["answer"] for a in parts)
    assert max(a["end"] for a in parts) == len(long)
    for call in ({"question": "", "context": "a"}, {"question": "a", "context": ""}):
        with pytest.raises(ValueError, match="may be empty"):
            ours(call)
    with pytest.raises(ValueError, match="give question= and context="):
        ours(question="who ?")


def test_a_folder_tells_its_task_and_options_hold_for_every_call() -> None:
    path = folder("ForSequenceClassification", num_labels=3)
    assert votive.pipeline(model=path).task == "text-classification"
    assert votive.pipeline(model=folder("ForMaskedLM")).task == "fill-mask"
    assert votive.pipeline(model=folder("ForCausalLM", "GPT2")).task == "text-generation"
    ours, reference = _ours("text-classification", path, top_k=2), theirs("text-classification", path, top_k=2)
    same(ours(TEXTS[0]), reference(TEXTS[0]))
    same(ours(TEXTS, top_k=1), reference(TEXTS, top_k=1))
    index = json.loads((path / "config.json").read_text())
    assert index["architectures"] == ["BertForSequenceClassification"]


def test_languages_are_named_by_their_tokens() -> None:
    path = folder("ForConditionalGeneration", "Bart")
    tok = votive.text.Tokenizer.from_pretrained(path)
    # Two words stand for languages here; the first is put before every text.
    tok.add_special_tokens({"extra_special_tokens": ["lon", "par"]})
    model = votive.models.AutoModelForSeq2SeqLM.from_pretrained(path)
    pipe = votive.pipeline("translation", model=model, tokenizer=tok, max_new_tokens=5)
    lon, par = tok.convert_tokens_to_ids(["lon", "par"])
    plain = {"num_beams": 4, "max_new_tokens": 5}
    ids = tok("lon the cat", return_tensors="vt").input_ids
    other = votive.where(ids == lon, votive.full_like(ids, par), ids)
    expected = model.generate(other, forced_bos_token_id=lon, **plain)
    got = pipe("lon the cat", src_lang="par", tgt_lang="lon")
    assert got == [{"translation_text": tok.decode(expected[0].tolist(), skip_special_tokens=True)}]
    with pytest.raises(ValueError, match="no token of a language to the text"):
        pipe("the cat", src_lang="par")
