"""The languages Whisper knows, in the order of their tokens. Knows no tokens' numbers."""

from __future__ import annotations

from ..core.similar import did_you_mean

# The order is that of the tokens; Cantonese came with large-v3.
_NAMED = """
en:english zh:chinese de:german es:spanish ru:russian ko:korean fr:french ja:japanese pt:portuguese
tr:turkish pl:polish ca:catalan nl:dutch ar:arabic sv:swedish it:italian id:indonesian hi:hindi
fi:finnish vi:vietnamese he:hebrew uk:ukrainian el:greek ms:malay cs:czech ro:romanian da:danish
hu:hungarian ta:tamil no:norwegian th:thai ur:urdu hr:croatian bg:bulgarian lt:lithuanian la:latin
mi:maori ml:malayalam cy:welsh sk:slovak te:telugu fa:persian lv:latvian bn:bengali sr:serbian
az:azerbaijani sl:slovenian kn:kannada et:estonian mk:macedonian br:breton eu:basque is:icelandic
hy:armenian ne:nepali mn:mongolian bs:bosnian kk:kazakh sq:albanian sw:swahili gl:galician
mr:marathi pa:punjabi si:sinhala km:khmer sn:shona yo:yoruba so:somali af:afrikaans oc:occitan
ka:georgian be:belarusian tg:tajik sd:sindhi gu:gujarati am:amharic yi:yiddish lo:lao uz:uzbek
fo:faroese ht:haitian_creole ps:pashto tk:turkmen nn:nynorsk mt:maltese sa:sanskrit
lb:luxembourgish my:myanmar bo:tibetan tl:tagalog mg:malagasy as:assamese tt:tatar haw:hawaiian
ln:lingala ha:hausa ba:bashkir jw:javanese su:sundanese yue:cantonese
"""
LANGUAGES: dict[str, str] = {
    code: name.replace("_", " ") for code, _, name in (w.partition(":") for w in _NAMED.split())
}
_ALSO = """
burmese:my valencian:ca flemish:nl haitian:ht letzeburgesch:lb pushto:ps panjabi:pa moldavian:ro moldovan:ro
sinhalese:si castilian:es mandarin:zh
"""
CODES: dict[str, str] = {
    **{name: code for code, name in LANGUAGES.items()},
    **dict(w.split(":") for w in _ALSO.split()),
}
# Languages whose words are not parted by spaces.
UNSPACED = frozenset({"zh", "ja", "th", "lo", "my", "yue"})


def language_code(language: str) -> str:
    """The code of a language given by code, by English name, or as its token.

    >>> from votive.speech import language_code
    >>> language_code("German"), language_code("<|de|>"), language_code("DE")
    ('de', 'de', 'de')
    """
    asked = language.strip().lower().removeprefix("<|").removesuffix("|>")
    if asked in LANGUAGES:
        return asked
    if asked in CODES:
        return CODES[asked]
    hint = did_you_mean(asked, [*LANGUAGES, *CODES], 1)
    raise ValueError(f"language {language!r} is not known; give a code such as 'de', or an English name.{hint}")
