"""Auto classes for what is seen and heard. Knows no family."""

from __future__ import annotations

from .auto import AutoModel


class AutoModelForObjectDetection(AutoModel):
    """The model that finds things in a picture.

    >>> votive.models.AutoModelForObjectDetection.use
    'detect'
    """

    use = "detect"


class AutoModelForSemanticSegmentation(AutoModel):
    """The model that gives each pixel a class.

    >>> votive.models.AutoModelForSemanticSegmentation.use
    'segment'
    """

    use = "segment"


class AutoModelForImageSegmentation(AutoModel):
    """The model that cuts out what it finds in a picture.

    >>> votive.models.AutoModelForImageSegmentation.use
    'cut_out'
    """

    use = "cut_out"


class AutoModelForMaskedImageModeling(AutoModel):
    """The model that paints hidden patches.

    >>> votive.models.AutoModelForMaskedImageModeling.use
    'masked_image'
    """

    use = "masked_image"


class AutoModelForVisualQuestionAnswering(AutoModel):
    """The model that answers questions about pictures.

    >>> votive.models.AutoModelForVisualQuestionAnswering.use
    'visual_answer'
    """

    use = "visual_answer"


class AutoModelForMaskGeneration(AutoModel):
    """The model that cuts out what points and boxes show.

    >>> votive.models.AutoModelForMaskGeneration.use
    'masks'
    """

    use = "masks"


class AutoModelForDepthEstimation(AutoModel):
    """The model that tells how far away each pixel is.

    >>> votive.models.AutoModelForDepthEstimation.use
    'depth'
    """

    use = "depth"


class AutoModelForCTC(AutoModel):
    """The model that writes letters for moments of a recording.

    >>> votive.models.AutoModelForCTC.use
    'ctc'
    """

    use = "ctc"


class AutoModelForAudioClassification(AutoModel):
    """The model that gives a recording a class.

    >>> votive.models.AutoModelForAudioClassification.use
    'audio'
    """

    use = "audio"


class AutoModelForAudioFrameClassification(AutoModel):
    """The model that gives each moment of a recording a class.

    >>> votive.models.AutoModelForAudioFrameClassification.use
    'audio_frames'
    """

    use = "audio_frames"


class AutoModelForImageTextToText(AutoModel):
    """The model that reads texts with pictures and writes.

    >>> votive.models.AutoModelForImageTextToText.use
    'image_text'
    """

    use = "image_text"


class AutoBackbone(AutoModel):
    """The model whose stages others read.

    >>> votive.models.AutoBackbone.use
    'backbone'
    """

    use = "backbone"
