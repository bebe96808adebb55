"""From a configuration to the model with a head for texts: of positions, of answers, of choices. Knows no family."""

from __future__ import annotations

from .auto import AutoModel


class AutoModelForTokenClassification(AutoModel):
    """The model that gives each position a class.

    >>> votive.models.AutoModelForTokenClassification.use
    'tokens'
    """

    use = "tokens"


class AutoModelForQuestionAnswering(AutoModel):
    """The model that finds where in a text an answer begins and ends.

    >>> votive.models.AutoModelForQuestionAnswering.use
    'answer'
    """

    use = "answer"


class AutoModelForMultipleChoice(AutoModel):
    """The model that chooses one of several texts.

    >>> votive.models.AutoModelForMultipleChoice.use
    'choice'
    """

    use = "choice"


class AutoModelForPreTraining(AutoModel):
    """The model with the heads that a family was trained with.

    >>> votive.models.AutoModelForPreTraining.use
    'pretrain'
    """

    use = "pretrain"


class AutoModelForNextSentencePrediction(AutoModel):
    """The model that says whether one text follows another.

    >>> votive.models.AutoModelForNextSentencePrediction.use
    'next_sentence'
    """

    use = "next_sentence"
