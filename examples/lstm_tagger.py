"""Tag words with their part of speech, where only the sentence tells noun from verb.

    python examples/lstm_tagger.py

Result: 99.8 % of the words of 500 new sentences right after 200 steps, against 84.2 % for each
word's most frequent tag; 6 to 22 s on a busy machine.
"""

import argparse
import random
import time

from progress import Line

import votive
from votive import nn
from votive.nn import functional as F
from votive.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

# "light" is listed three times and "duck" twice: alone, such a word does not tell its tag.
WORDS = {
    "DET": ["the", "a", "this", "every"],
    "ADJ": ["old", "small", "light", "green", "fast", "clean"],
    "NOUN": ["dog", "light", "duck", "park", "fish", "watch", "cook", "plant", "cat", "tower"],
    "VERB": ["light", "duck", "park", "fish", "watch", "cook", "plant", "clean", "sees", "finds"],
    "ADV": ["fast", "often", "here", "never"],
    "PREP": ["near", "with", "under"],
    "NAME": ["ada", "grace", "alan"],
}
TAGS = list(WORDS)
VOCABULARY = sorted({word for words in WORDS.values() for word in words})
PAD = -100  # cross_entropy's ignore_index


def noun_phrase(rng: random.Random, depth: int = 0) -> list[str]:
    """NAME | DET ADJ* NOUN, sometimes with a prepositional phrase behind it."""
    if rng.random() < 0.2:
        return ["NAME"]
    tags = ["DET"] + ["ADJ"] * rng.choice([0, 0, 1, 1, 2]) + ["NOUN"]
    if depth < 2 and rng.random() < 0.3:
        tags += ["PREP", *noun_phrase(rng, depth + 1)]
    return tags


def sentence(rng: random.Random) -> tuple[votive.Tensor, votive.Tensor]:
    """Word and tag numbers of one sentence: subject, verb, maybe object, maybe adverb."""
    tags = [*noun_phrase(rng), "VERB"]
    tags += noun_phrase(rng) if rng.random() < 0.7 else []
    tags += ["ADV"] if rng.random() < 0.4 else []
    words = [VOCABULARY.index(rng.choice(WORDS[tag])) for tag in tags]
    return votive.tensor(words), votive.tensor([TAGS.index(tag) for tag in tags])


class Tagger(nn.Module):
    """Embedding, LSTM in both directions, one score per tag and word."""

    def __init__(self, width: int = 32, hidden: int = 48) -> None:
        super().__init__()
        self.embed = nn.Embedding(len(VOCABULARY), width)
        self.lstm = nn.LSTM(width, hidden, batch_first=True, bidirectional=True)
        self.score = nn.Linear(2 * hidden, len(TAGS))

    def forward(self, sentences: list[votive.Tensor]) -> votive.Tensor:
        lengths = votive.tensor([len(words) for words in sentences])
        embedded = self.embed(pad_sequence(sentences, batch_first=True))  # (B, T, width)
        # Packed, the backward direction starts at each sentence's own end, not in the padding.
        packed = pack_padded_sequence(embedded, lengths, batch_first=True, enforce_sorted=False)
        hidden, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        return self.score(hidden)  # (B, T, tags)


def together(batch: list) -> tuple[list[votive.Tensor], votive.Tensor]:
    """Word lists as they are; tags padded into one (B, T) tensor."""
    words, tags = zip(*batch)
    return list(words), pad_sequence(tags, batch_first=True, padding_value=PAD)


@votive.no_grad()
def accuracy(model: nn.Module, batch: list) -> float:
    """The fraction of words tagged right."""
    words, tags = together(batch)
    right = (model(words).argmax(-1) == tags) & (tags != PAD)
    return right.sum().item() / (tags != PAD).sum().item()


def word_alone(train: list, test: list) -> float:
    """The accuracy of giving each word its most frequent tag: what context has to beat."""
    counts = votive.zeros(len(VOCABULARY), len(TAGS))
    for words, tags in train:
        counts.index_put_((words, tags), votive.ones(len(words)), accumulate=True)
    best = counts.argmax(1)
    right = sum((best[words] == tags).sum().item() for words, tags in test)
    return right / sum(len(words) for words, _ in test)


def main() -> None:
    parser = argparse.ArgumentParser(description="Tag words with a bidirectional LSTM.")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()

    votive.manual_seed(args.seed)
    rng = random.Random(args.seed)
    train = [sentence(rng) for _ in range(2000)]
    test = [sentence(rng) for _ in range(500)]
    model = Tagger()
    optimizer = votive.optim.Adam(model.parameters(), lr=1e-2)

    began = time.perf_counter()
    line = Line(args.steps)
    for _ in line:
        words, tags = together(rng.sample(train, 32))
        loss = F.cross_entropy(model(words).flatten(0, 1), tags.flatten(), ignore_index=PAD)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        line.show(loss=loss.item())
    seconds = time.perf_counter() - began

    print(f"loss {loss.item():.3f}  held-out accuracy {accuracy(model, test):.3f}", end="  ")
    print(f"each word alone {word_alone(train, test):.3f}  seconds {seconds:.1f}")


if __name__ == "__main__":
    main()
