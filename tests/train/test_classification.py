"""Learning classes of texts: labels, new heads, what is learned, written and resumed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import votive
from tests.train import tuned
from votive.models import AutoModelForSequenceClassification
from votive.train import ClassifyRecipe, classify
from votive.train.classification import Method, labels_of, step
from votive.train.examples import Example, read_examples
from votive.train.labels import Labels

KINDS = {"animal": ["cat", "dog"], "number": ["one", "two", "three"], "answer": ["yes", "no"]}
TEXTS = [{"text": f"the {word} ran", "label": kind} for kind, words in KINDS.items() for word in words]
PLAN: dict[str, Any] = {"batch_size": 4, "held_out": 0.0, "progress": False, "lr": 5e-3}


def config(kind: str = "bert", **more: Any) -> Any:
    sizes: dict[str, Any] = {"vocab_size": len(tuned.tokenizer()), "max_position_embeddings": 64}
    if kind == "distilbert":
        return votive.models.DistilBertConfig(**sizes, dim=16, hidden_dim=32, n_layers=2, n_heads=2, **more)
    return votive.models.BertConfig(
        **sizes, hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2, **more
    )


@pytest.fixture(scope="module", params=["bert", "distilbert"])
def base(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    votive.manual_seed(0)
    kind = {"bert": votive.models.BertModel, "distilbert": votive.models.DistilBertModel}[request.param]
    model = kind(config(request.param, initializer_range=0.2))
    return tuned.folder(tmp_path_factory.mktemp(request.param), model, tuned.tokenizer())


@pytest.mark.parametrize("lora", [None, 4])
def test_texts_get_their_class_by_what_is_written(base: Path, tmp_path: Path, lora: int | None) -> None:
    more = {**PLAN, "lora": lora, "lr": 3e-2 if lora else 1e-2}
    made = classify(TEXTS, base, tmp_path / "out", eval_data=TEXTS, max_steps=80, **more)
    assert made.metrics["accuracy"] >= (0.8 if lora else 1.0)
    names = {0: "animal", 1: "answer", 2: "number"}
    if lora:
        with pytest.warns(UserWarning, match="missing"):  # the head, which comes with the adapter
            again = AutoModelForSequenceClassification.from_pretrained(tmp_path / "out", id2label=names)
    else:
        again = AutoModelForSequenceClassification.from_pretrained(tmp_path / "out")
    assert again.config.id2label == names
    tok = made.tokenizer
    for row in TEXTS:
        inputs = tok(row["text"], return_tensors="vt")
        logits = again(**inputs).logits
        assert lora or names[int(logits.argmax(-1))] == row["label"]
        assert float((logits - made.model(**inputs).logits).abs().max().detach()) < 1e-4


@pytest.mark.parametrize("lora", [None, 4])
def test_a_decoder_learns_classes_with_a_new_head(tmp_path: Path, lora: int | None) -> None:
    tok = tuned.tokenizer()
    folder = tuned.folder(tmp_path / "decoder", tuned.decoder(tok, pad_token_id=None), tok)
    more = {**PLAN, "lora": lora, "lr": 3e-2 if lora else 1e-2}
    made = classify(TEXTS, folder, tmp_path / "out", eval_data=TEXTS, max_steps=60, **more)
    assert made.metrics["accuracy"] == 1.0
    assert made.model.config.pad_token_id == tok.pad_token_id
    if lora:
        with pytest.warns(UserWarning, match="missing"):
            again = AutoModelForSequenceClassification.from_pretrained(tmp_path / "out", num_labels=3)
    else:
        again = AutoModelForSequenceClassification.from_pretrained(tmp_path / "out")
        assert again.config.id2label == {0: "animal", 1: "answer", 2: "number"}
    inputs = tok([row["text"] for row in TEXTS], padding=True, return_tensors="vt")
    assert float((again(**inputs).logits - made.model(**inputs).logits).abs().max().detach()) < 1e-4


@pytest.mark.parametrize("lora", [None, 2])
def test_a_run_that_was_stopped_ends_the_same(base: Path, tmp_path: Path, lora: int | None) -> None:
    plan = {**PLAN, "batch_size": 2, "accumulate": 2, "max_steps": 6, "checkpoint_every": 1, "lora": lora}
    whole = classify(TEXTS, base, tmp_path / "whole", **plan)
    classify(TEXTS, base, tmp_path / "parts", callbacks=[lambda t: t.stop() if t.step == 3 else None], **plan)
    again = classify(TEXTS, base, tmp_path / "parts", resume=True, **plan)
    assert again.history.columns == whole.history.columns
    name = "adapter_model.safetensors" if lora else "model.safetensors"
    assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "parts" / name).read_bytes()


@pytest.mark.parity
def test_the_loss_and_gradients_are_those_of_torch() -> None:
    torch = pytest.importorskip("torch")
    votive.manual_seed(0)
    labels = Labels.of(read_examples(TEXTS))
    model = votive.models.BertForSequenceClassification(config(num_labels=3, initializer_range=0.2)).eval()
    method = Method(ClassifyRecipe(model="x"), tuned.tokenizer(), labels)
    batch = method.collate(method.rows(read_examples(TEXTS)))
    logits = model(**{n: v for n, v in batch.items() if n != "labels"}).logits
    there = torch.from_numpy(logits.detach().numpy()).requires_grad_()
    wanted = torch.nn.functional.cross_entropy(there, torch.from_numpy(batch["labels"].numpy()))
    wanted.backward()
    loss = step(model, {**batch, "share": votive.tensor(0.5)})
    assert loss.item() == pytest.approx(0.5 * wanted.item(), abs=1e-6)
    (logits * votive.tensor(there.grad.numpy())).sum().backward()
    grads = {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}
    model.zero_grad()
    loss.backward()
    for name, p in model.named_parameters():
        if name in grads:
            assert float((2 * p.grad - grads[name]).abs().max()) < 1e-5, name


def test_pairs_of_texts_are_told_apart(tmp_path: Path) -> None:
    votive.manual_seed(0)
    tok = tuned.tokenizer()
    method = Method(ClassifyRecipe(model="x"), tok, Labels("single_label_classification", ("no", "yes")))
    rows = [{"text": "the cat", "text_pair": "the dog", "label": 1}, {"text": "one", "text_pair": "two", "label": "no"}]
    batch = method.collate(method.rows([Example("", row) for row in rows]))
    assert batch["labels"].tolist() == [1, 0]
    wanted = tok([row["text"] for row in rows], [row["text_pair"] for row in rows])["input_ids"]
    lengths = batch["attention_mask"].sum(1).tolist()
    assert [row[:n] for row, n in zip(batch["input_ids"].tolist(), lengths, strict=True)] == wanted


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"text": "x"}', 'needs "text" and "label"; it has \'text\''),
        ('{"text": "x", "label": []}', r'"label" must be a name or a number from 0, got \[\]'),
        ('{"text": "x", "label": -1}', "got -1"),
        ('{"text": "x", "label": true}', "got True"),
        ('{"text": "x", "label": 0.5}', r"got 0\.5"),
        ('{"text": "x", "label": "bat"}', "\"label\" is 'bat', which is none of cat, dog"),
        ('{"text": "x", "label": 2}', '"label" is 2, and there are 2 classes, from 0: cat, dog'),
        ('{"text": 3, "label": 1}', '"text" must be a text, got 3'),
    ],
)
def test_what_is_wrong_is_told_with_its_line(tmp_path: Path, line: str, says: str) -> None:
    path = tmp_path / "data.jsonl"
    path.write_text('{"text": "fine", "label": "cat"}\n' + line + "\n")
    examples = read_examples(path)
    with pytest.raises(ValueError, match=r"data\.jsonl:2: .*" + says):
        Method(ClassifyRecipe(model="x"), tuned.tokenizer(), Labels.of(examples, ("cat", "dog"))).rows(examples)


def test_labels_that_do_not_go_are_told(tmp_path: Path) -> None:
    mixed = read_examples([{"text": "a", "label": 1}, {"text": "b", "label": "one"}])
    with pytest.raises(ValueError, match="some labels are names and some numbers"):
        labels_of(mixed)
    with pytest.raises(ValueError, match="all examples are of one class, 'one'"):
        labels_of(mixed[1:])
    with pytest.raises(ValueError, match="two names or more, each once"):
        ClassifyRecipe(model="x", labels=("a", "a"))
    votive.models.ViTConfig(hidden_size=16, num_attention_heads=2).save_pretrained(folder := tmp_path / "vit")
    tuned.tokenizer().save_pretrained(folder)
    with pytest.raises(ValueError, match="is a vit, which has no head for classes of texts; begin with"):
        classify(TEXTS, folder, tmp_path / "out", **PLAN)
    model = votive.models.BertForSequenceClassification(config(num_labels=2))
    with pytest.raises(ValueError, match="has a head for 2 classes, and there are 3"):
        classify(TEXTS, model, tmp_path / "out", tokenizer=tuned.tokenizer(), **PLAN)


def _encoder(folder: Path) -> Path:
    votive.manual_seed(0)
    return tuned.folder(folder, votive.models.BertModel(config(initializer_range=0.2)), tuned.tokenizer())


def test_texts_get_several_classes(tmp_path: Path) -> None:
    # Of each text whether an animal runs, and whether it is a short word.
    told = {"cat": ["animal", "short"], "dog": ["animal", "short"], "three": [], "one": ["short"], "two": ["short"]}
    data = [{"text": f"the {word} ran", "label": label} for word, label in told.items()]
    made = classify(
        data, _encoder(tmp_path / "base"), tmp_path / "out", eval_data=data, max_steps=80, **{**PLAN, "lr": 1e-2}
    )
    assert made.metrics["accuracy"] == 1.0
    again = AutoModelForSequenceClassification.from_pretrained(tmp_path / "out")
    assert again.config.problem_type == "multi_label_classification"
    assert again.config.id2label == {0: "animal", 1: "short"}
    for row in data:
        scores = again(**made.tokenizer(row["text"], return_tensors="vt")).logits[0]
        assert [again.config.id2label[i] for i in range(2) if scores[i] > 0] == row["label"]
    # A pipeline knows from the configuration that several may be true.
    pipe = votive.pipeline("text-classification", model=again, tokenizer=made.tokenizer)
    found = {one["label"]: one["score"] for one in pipe("the three ran", top_k=None)}
    assert max(found.values()) < 0.5


def test_texts_get_numbers(tmp_path: Path) -> None:
    data = [
        {"text": f"the {word} ran", "label": value} for word, value in {"cat": -1.5, "dog": 2.0, "one": 0.25}.items()
    ]
    made = classify(
        data,
        _encoder(tmp_path / "base"),
        tmp_path / "out",
        eval_data=data,
        max_steps=120,
        best="error",
        eval_every=20,
        **{**PLAN, "lr": 1e-2},
    )
    assert made.metrics["error"] < 0.2
    again = AutoModelForSequenceClassification.from_pretrained(tmp_path / "out")
    assert (again.config.problem_type, again.config.num_labels) == ("regression", 1)
    for row in data:
        found = float(again(**made.tokenizer(row["text"], return_tensors="vt")).logits.detach())
        assert abs(found - row["label"]) < 0.5


@pytest.mark.parity
@pytest.mark.parametrize("problem", ["regression", "multi_label_classification"])
def test_losses_of_other_problems_are_those_of_torch(problem: str) -> None:
    torch = pytest.importorskip("torch")
    several = problem != "regression"
    data = [
        {"text": "the cat", "label": ["b"] if several else 1},
        {"text": "one", "label": ["a", "b"] if several else 0.5},
    ]
    examples = read_examples(data)
    labels = Labels.of(examples, problem=problem)
    model = votive.models.BertForSequenceClassification(
        config(num_labels=len(labels.names), problem_type=problem)
    ).eval()
    method = Method(ClassifyRecipe(model="x"), tuned.tokenizer(), labels)
    batch = method.collate(method.rows(examples))
    found = method.measure(model, batch)
    logits = torch.from_numpy(model(**batch).logits.detach().numpy())
    targets = torch.tensor([[0.0, 1.0], [1.0, 1.0]]) if several else torch.tensor([[1.0], [0.5]])
    loss = torch.nn.BCEWithLogitsLoss() if several else torch.nn.MSELoss()
    assert float(found["loss"].detach()) == pytest.approx(float(loss(logits, targets)), rel=1e-5)
    if several:
        assert float(found["accuracy"]) == pytest.approx(float(((logits > 0) == (targets > 0.5)).float().mean()))
    else:
        assert float(found["error"].detach()) == pytest.approx(float((logits - targets).abs().mean()), rel=1e-5)


@pytest.mark.parametrize(
    ("labels", "more", "says"),
    [
        ([1.5, "a"], {}, '"label" must be a name or a number from 0, got 1.5'),
        ([1.5, True], {"problem": "regression"}, "must be a number, as others are, got True"),
        ([1.5, float("nan")], {}, "must be a number, as others are, got nan"),
        ([1.0, 2.0], {"problem": "regression", "given": ("a", "b")}, "these examples have numbers to predict"),
        ([["a"], ["a"]], {}, "there is nothing to tell apart"),
        ([[], []], {}, "no example has a class"),
        ([["a", 1], ["b"]], {}, "some labels are names and some numbers"),
        ([["a"], ["c"]], {"given": ("a", "b")}, "'c', which is none of a, b"),
        ([["a"], "b"], {}, r"must be a name or a number from 0, got \['a'\]"),
    ],
)
def test_labels_of_several_kinds_are_told(labels: list[Any], more: dict[str, Any], says: str) -> None:
    examples = [Example(f"data:{i}", {"text": "x", "label": label}) for i, label in enumerate(labels)]
    with pytest.raises(ValueError, match=says):
        Labels.of(examples, **more)
    with pytest.raises(ValueError, match="problem must be one of"):
        ClassifyRecipe(model="x", problem="several")


def test_numbers_of_tables_are_numbers(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("text,label\none,0.5\ntwo,-3\nthree,1.5e2\n")
    examples = read_examples(tmp_path / "data.csv")
    labels = Labels.of(examples)
    assert labels.problem == "regression"
    assert [labels.target(example) for example in examples] == [0.5, -3.0, 150.0]
