"""A session as a Python program that makes it again. Runs nothing."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import votive

from .edit_plan import EditPlan, in_force, raw
from .edits import Edit
from .session_sampling import config_for

if TYPE_CHECKING:
    from .session import Session


_TITLE = '"""A session with votive, step by step."""'
# Larger tensors are written as bytes.
_LITERAL = 32


def to_script(session: Session, setup: str | None) -> str:
    """The program; `setup` must define `model` and `tokenizer`."""
    begun = session._begun
    own = config_for(session.model, {}).to_dict()
    used = begun["settings"].to_dict()
    settings = {k: v for k, v in used.items() if k not in own or own[k] != v}
    settings |= {k: None for k in own if k not in used}
    body = _Body(session)
    given = [body.tokens(begun["prompt"])]
    if begun["edits"]:
        given.append(f"edits={body.edits(begun['edits'])}")
    given += [f"{k}={begun[k]!r}" for k in ("seed", "block", "top", "memory_limit")]
    if begun.get("cache_dtype") is not None:
        given.append(f"cache_dtype={begun['cache_dtype']!r}")
    given += [f"{k}={v!r}" for k, v in settings.items()]
    calls = [f"session = glass.Session(\n    model, tokenizer, {', '.join(given)}\n)"]
    calls += [body.call(name, args) for name, args in session.actions]
    node = session.node
    ending = [
        f"assert session.tokens == {session.tokens}",
        f"assert session.node.digest == {node.digest!r}, 'the logits differ'",
    ]
    if session.tokenizer is not None:
        ending.append("print(session.text)")
    head = ['"""A session with votive, step by step."""', "", "import votive", "from votive import glass"]
    if body.needs_bytes:
        head[2:2] = ["import base64", ""]
        head += ["", "", *_READER]
    parts = [*head, "", _setup(session) if setup is None else setup.strip(), "", *calls, "", *ending]
    return "\n".join(parts) + "\n"


def _setup(session: Session) -> str:
    name = getattr(session.model, "name_or_path", "")
    if not name:
        raise ValueError(
            "to_script: the model was not loaded by a name, so the program cannot load it; give "
            "setup='...', lines that define model and tokenizer."
        )
    dtype = str(session.model.dtype)
    lines = [f"model = votive.models.AutoModelForCausalLM.from_pretrained({name!r}, dtype={dtype})", "model.eval()"]
    if str(session.model.device) != "cpu":
        lines.append(f"model.to({str(session.model.device)!r})")
    source = f"votive.text.Tokenizer.from_pretrained({name!r})"
    lines.append(f"tokenizer = {source if session.tokenizer is not None else None}")
    return "\n".join(lines)


_READER = [
    "def tensor(data, dtype, shape):",
    '    """A tensor from its bytes."""',
    "    flat = votive.frombuffer(bytearray(base64.b64decode(data)), dtype=dtype)",
    "    return flat.reshape(shape)",
    "",
]


class _Body:
    """Writes calls."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.needs_bytes = False

    def call(self, name: str, args: Mapping[str, Any]) -> str:
        if name == "set_edits":
            start = ", from_start=True" if args["from_start"] else ""
            return f"session.set_edits({self.edits(args['plan'])}{start})"
        if name == "set_prompt":
            return f"session.set_prompt({self.tokens(args['tokens'])})"
        if name == "set_sampler":
            settings = ", ".join(f"{k}={v!r}" for k, v in args["settings"].items())
            return f"session.set_sampler({settings})"
        if name == "set_seed":
            return f"session.set_seed({args['seed']})"
        if name == "choose":
            return f"session.choose({args['token']}){self._shown(args['token'])}"
        if name in ("step", "undo", "redo"):
            return f"session.{name}({'' if args['n'] == 1 else args['n']})"
        return f"session.{name}({'' if args['node'] is None else args['node']})"

    def tokens(self, tokens: list[int]) -> str:
        """A prompt as text where it leads back to its tokens."""
        tokenizer = self.session.tokenizer
        if tokenizer is not None:
            text = tokenizer.decode(tokens)
            if list(tokenizer(text).input_ids) == list(tokens):
                return repr(text)
        return repr(list(tokens))

    def _shown(self, token: int) -> str:
        if self.session.tokenizer is None:
            return ""
        return f"  # {self.session.tokenizer.decode([token])!r}"

    def edits(self, plan: EditPlan) -> str:
        return f"[{', '.join(self._edit(e) for e in in_force(plan))}]"

    def _edit(self, edit: Edit) -> str:
        fields = edit.to_dict()
        given = [repr(fields.pop("at")), repr(fields.pop("do"))]
        if "value" in fields:
            given.append(f"value={self._value(fields.pop('value'))}")
        return f"glass.Edit({', '.join([*given, *(f'{k}={v!r}' for k, v in fields.items())])})"

    def _value(self, value: object) -> str:
        if not isinstance(value, votive.Tensor):
            return repr(value)
        if value.numel() <= _LITERAL and value.dtype in (votive.float32, votive.float64):
            finite = bool(value.isfinite().all())
            if finite:
                return f"votive.tensor({value.tolist()!r}, dtype=votive.{value.dtype.name})"
        self.needs_bytes = True
        data = base64.b64encode(raw(value)).decode()
        return f"tensor({data!r}, {value.dtype}, {tuple(value.shape)})"
