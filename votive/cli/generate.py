"""`votive generate`: continue a text. The model writes; this reads arguments and shows tokens."""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING, Any

from . import Commands, UsageError, command
from .inputs import checked_text, read_stdin, read_text
from .model_options import Loaded, add_model_options, load_model
from .numbers import number, whole
from .sampling_options import add_sampling_options, seeded, settings
from .terminal import is_terminal, json_line, note, paint, print_json

if TYPE_CHECKING:
    from ..nn import Module


def add(commands: Commands) -> None:
    """Declare the arguments."""
    p = command(
        commands,
        "generate",
        description="Continue a text with a language model: without --model, with the bundled\n"
        "story-teller. The prompt is an argument, a file or what is piped in.",
        examples='  votive generate "Once upon a time"\n'
        '  votive generate "The king said" --temperature 0.7 --top-p 0.9 --seed 1\n'
        "  echo 'There was a fox' | votive generate --max-new-tokens 50 --stop '\\n'\n"
        "  votive generate --model model.gguf --chat 'What is the capital of France?'\n"
        '  votive generate "Once" --json --greedy',
    )
    p.add_argument("prompt", metavar="PROMPT", nargs="?", help="the text to continue")
    p.add_argument("--file", metavar="FILE", help="read the prompt from a file; - is stdin")
    p.add_argument("--chat", action="store_true", help="put the prompt into the chat template")
    p.add_argument("--system", metavar="TEXT", help="with --chat: the system message")
    p.add_argument("--no-echo", action="store_true", help="print only the new text")
    add_model_options(p)
    add_sampling_options(p, max_new_tokens=200)
    p.add_argument("--num-beams", metavar="N", type=whole(1, 1000), help="beam search with N beams")
    p.add_argument("--length-penalty", metavar="X", type=number(), help="with beams: above 0 favours longer texts")
    p.add_argument("-n", "--num-return-sequences", metavar="N", type=whole(1, 1000), help="number of texts to write")
    p.add_argument("--draft-model", metavar="MODEL", help="a small model that drafts tokens ahead")
    p.add_argument("--cache", choices=("dynamic", "static", "sliding"), help="the kind of KV cache")
    p.add_argument("--prefill-chunk-size", metavar="N", type=whole(1), help="read N tokens at a time")
    form = p.add_mutually_exclusive_group()
    form.add_argument("--json-schema", metavar="FILE", help="write JSON that follows this JSON schema")
    form.add_argument("--regex", metavar="R", help="write a text that matches this regular expression")
    form.add_argument(
        "--grammar", metavar="FILE", help="write a text that follows this grammar (Lark's or llama.cpp's notation)"
    )
    form.add_argument("--choice", metavar="TEXT", action="append", help="write one of these texts; may be repeated")
    p.add_argument("--prompt-lookup", metavar="N", type=whole(1), help="draft N tokens from the text so far")
    for flag, text in (
        ("--stream", "print tokens as they are generated"),
        ("--no-stream", "print the text when it is complete"),
    ):
        p.add_argument(flag, dest="stream", action="store_const", const=flag == "--stream", help=text)
    p.add_argument("--stats", action="store_true", help="show tokens per second on stderr")
    p.add_argument("--json", action="store_true", help="write JSON with tokens, log probabilities and times")


def run(args: argparse.Namespace) -> int:
    """Load, write, report."""
    options = settings(args)
    for name in ("num_beams", "length_penalty", "num_return_sequences", "prefill_chunk_size"):
        if getattr(args, name) is not None:
            options[name] = getattr(args, name)
    if args.cache is not None:
        options["cache_implementation"] = args.cache
    options.update(form_of(args))
    if args.prompt_lookup is not None:
        options["prompt_lookup_num_tokens"] = args.prompt_lookup
    if args.system is not None and not args.chat:
        raise UsageError("--system needs --chat")
    many = max(options.get("num_beams", 1), options.get("num_return_sequences", 1)) > 1
    if args.stream and many:
        raise UsageError("--stream shows one text; it does not go with beams or several texts")
    prompt = prompt_of(args)
    began = time.perf_counter()
    loaded = load_model(args, args.model, auto=None)
    draft = None if args.draft_model is None else load_model(args, args.draft_model).model
    options = seeded(options)
    ids = encoded(args, loaded, prompt)
    _warn_of_length(args, loaded, len(ids) + options["max_new_tokens"])
    facts: dict[str, Any] = {
        "model": loaded.name,
        "prompt": prompt,
        "prompt_tokens": ids,
        "seed": options["seed"],
        "settings": {k: v for k, v in options.items() if k != "seed"},
        "timing": {"load_seconds": time.perf_counter() - began},
    }
    if many:
        _generate_several(args, loaded, ids, options, draft, facts)
    else:
        _generate_one(args, loaded, ids, options, draft, facts)
    if args.json:
        print(json_line(facts)) if args.stream else print_json(facts)
    if args.stats:
        note(args, _stats(facts))
    return 0


def form_of(args: argparse.Namespace) -> dict[str, Any]:
    """What the text must look like, as a setting."""
    if args.json_schema is not None:
        return {"json_schema": read_text(args.json_schema)}
    if args.regex is not None:
        return {"regex": args.regex}
    if args.grammar is not None:
        return {"grammar": read_text(args.grammar)}
    return {} if args.choice is None else {"choices": args.choice}


def _warn_of_length(args: argparse.Namespace, loaded: Loaded, length: int) -> None:
    """Say that a text that was asked for is longer than the model was made for."""
    context = getattr(loaded.model.config, "max_position_embeddings", None)
    if args.max_new_tokens is not None and not loaded.seq2seq and context and length > context:
        note(args, f"{loaded.name} was made for {context:,} tokens in all; what is written beyond them gets worse.")


def prompt_of(args: argparse.Namespace) -> str:
    """The text to continue, from wherever it comes."""
    if args.prompt is not None and args.file is not None:
        raise UsageError("give the prompt as an argument or as --file, not both")
    if args.file is not None and args.file != "-":
        return read_text(args.file)
    piped = args.prompt is None and not is_terminal(sys.stdin)
    if args.file == "-" or args.prompt == "-" or piped:
        # The line's end is the shell's, not the text's.
        return read_stdin().removesuffix("\n")
    return checked_text(args.prompt or "", "the prompt")


def encoded(args: argparse.Namespace, loaded: Loaded, prompt: str) -> list[int]:
    """The ids that the model goes on from."""
    tokenizer = loaded.tokenizer
    if args.chat:
        if tokenizer.chat_template is None:
            raise ValueError(f"{loaded.name} has no chat template; leave out --chat.")
        messages = [{"role": "user", "content": prompt}]
        if args.system is not None:
            messages.insert(0, {"role": "system", "content": args.system})
        return list(tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False))
    ids = list(tokenizer.encode(prompt))
    if not ids:
        # A text begins where another has ended.
        ends = tokenizer.eos_token_id
        start = tokenizer.bos_token_id if tokenizer.bos_token_id is not None else ends
        if start is None:
            raise ValueError(f"{loaded.name} cannot start from nothing; give a prompt.")
        ids = [start]
    return ids


def _generate_one(
    args: argparse.Namespace,
    loaded: Loaded,
    ids: list[int],
    options: dict[str, Any],
    draft: Module | None,
    facts: dict[str, Any],
) -> None:
    from ..generation import stream

    shown = not args.json
    live = shown and args.stream is not False
    echo = not (args.no_echo or args.chat or loaded.seq2seq)
    extra: dict[str, Any] = {} if draft is None else {"assistant_model": draft}
    began = time.perf_counter()
    events = stream(loaded.model, loaded.tokenizer, [ids], **extra, **options)
    if live and echo:
        print(paint(facts["prompt"], "bold"), end="", flush=True)
    first, texts, tokens, event = 0.0, [], [], None
    for event in events:
        first = first or time.perf_counter() - began
        texts.append(event.text)
        tokens.append({"id": event.token, "text": event.text, "logprob": event.logprob})
        if live:
            print(event.text, end="", flush=True)
        elif args.json and args.stream:
            print(json_line(tokens[-1]), flush=True)
    seconds = time.perf_counter() - began
    text = "".join(texts)
    if shown:
        print("" if live else (facts["prompt"] if echo else "") + text)
    reason = None if event is None else event.finish_reason
    stop = None if event is None else event.stop
    facts["results"] = [{"text": text, "finish_reason": reason, "stop": stop, "tokens": tokens}]
    facts["timing"].update(_times(len(tokens), first, seconds))


def _generate_several(
    args: argparse.Namespace,
    loaded: Loaded,
    ids: list[int],
    options: dict[str, Any],
    draft: Module | None,
    facts: dict[str, Any],
) -> None:
    from .. import tensor
    from ..generation import generate

    extra: dict[str, Any] = {} if draft is None else {"assistant_model": draft}
    began = time.perf_counter()
    found = generate(
        loaded.model,
        tensor([ids], device=loaded.model.device),
        tokenizer=loaded.tokenizer,
        return_dict_in_generate=True,
        output_scores=args.json and options.get("num_beams", 1) > 1,
        **extra,
        **options,
    )
    seconds = time.perf_counter() - began
    named = loaded.model.generation_config.eos_token_id  # a number, or a list of them
    ends = {loaded.tokenizer.eos_token_id, *(named if isinstance(named, list) else [named])}
    results, count = [], 0
    start = 0 if loaded.seq2seq else len(ids)
    for i, row in enumerate(found.sequences.tolist()):
        new = row[start:]
        text = loaded.tokenizer.decode(new, skip_special_tokens=True)
        for stop in options.get("stop_strings", ()):
            text = text.split(stop)[0]
        result: dict[str, Any] = {"text": text, "tokens": [{"id": t} for t in new]}
        if found.finish_reasons is not None:
            result["finish_reason"] = found.finish_reasons[i]
        if found.sequences_scores is not None:
            result["score"] = found.sequences_scores[i].item()
        results.append(result)
        count += len([t for t in new if t not in ends])
    facts["results"] = results
    facts["timing"].update(_times(count, None, seconds))
    if not args.json:
        echo = "" if args.no_echo or args.chat or loaded.seq2seq else facts["prompt"]
        for i, result in enumerate(results):
            if len(results) > 1:
                print(paint(f"--- {i + 1}", "dim"))
            print(echo + result["text"])


def _times(count: int, first: float | None, seconds: float) -> dict[str, Any]:
    after = seconds - first if first is not None else seconds
    written = count - 1 if first is not None else count
    return {
        "new_tokens": count,
        "first_token_seconds": first,
        "seconds": seconds,
        "tokens_per_second": written / after if written > 0 and after > 0 else None,
    }


def _stats(facts: dict[str, Any]) -> str:
    t = facts["timing"]
    parts = [f"loaded in {t['load_seconds']:.2f} s"]
    if t["first_token_seconds"]:
        parts.append(f"{len(facts['prompt_tokens'])} tokens read in {t['first_token_seconds']:.2f} s")
    parts.append(f"{t['new_tokens']} written in {t['seconds']:.2f} s")
    if t["tokens_per_second"]:
        parts.append(f"{t['tokens_per_second']:.1f} tokens/s")
    return ", ".join([*parts, f"seed {facts['seed']}"])
