"""Spanish conjugation: the regular rules as code, the irregular forms as data.

There are six tenses: present (hablo), past, which is the pretérito (hablé), imperfect (hablaba),
future (hablaré), progressive (estoy hablando), perfect (he hablado). The English tenses have the
same names. There are five persons: *vosotros* is left out, and *ustedes* has the forms of the third
person plural.
"""

from __future__ import annotations

from functools import cache

from utils.minigpt.language import Language, Words

ER_IR = ("er", "ir")
ENDINGS = {
    "present": {"ar": "o as a amos an", "er": "o es e emos en", "ir": "o es e imos en"},
    "past": {"ar": "é aste ó amos aron"} | dict.fromkeys(ER_IR, "í iste ió imos ieron"),
    "imperfect": {"ar": "aba abas aba ábamos aban"} | dict.fromkeys(ER_IR, "ía ías ía íamos ían"),
    "future": dict.fromkeys(("ar", *ER_IR), "é ás á emos án"),
}

# Letters that change before the é of the first person, so that the sound stays: busqué, llegué.
SOFTENED = {"c": "qu", "g": "gu", "z": "c"}

# The stem's stressed vowel changes in the present, except for nosotros: empiezo, duermo, pido.
STEM_VOWEL = {
    "empezar": ("e", "ie"),
    "querer": ("e", "ie"),
    "dormir": ("o", "ue"),
    "jugar": ("u", "ue"),
    "pedir": ("e", "i"),
    "tener": ("e", "ie"),
    "decir": ("e", "i"),
}
FIRST_PERSON = {"tener": "tengo", "hacer": "hago", "decir": "digo", "ver": "veo", "salir": "salgo"}
FUTURE_STEM = {
    "tener": "tendr",
    "hacer": "har",
    "decir": "dir",
    "querer": "querr",
    "salir": "saldr",
}
PARTICIPLE = {"hacer": "hecho", "decir": "dicho", "ver": "visto", "leer": "leído"}
GERUND = {
    "leer": "leyendo",
    "ir": "yendo",
    "decir": "diciendo",
    "dormir": "durmiendo",
    "pedir": "pidiendo",
}

# Whole tenses that follow no rule.
IRREGULAR = {
    ("ser", "present"): "soy eres es somos son",
    ("ser", "past"): "fui fuiste fue fuimos fueron",
    ("ser", "imperfect"): "era eras era éramos eran",
    ("estar", "present"): "estoy estás está estamos están",
    ("estar", "past"): "estuve estuviste estuvo estuvimos estuvieron",
    ("tener", "past"): "tuve tuviste tuvo tuvimos tuvieron",
    ("hacer", "past"): "hice hiciste hizo hicimos hicieron",
    ("decir", "past"): "dije dijiste dijo dijimos dijeron",
    ("querer", "past"): "quise quisiste quiso quisimos quisieron",
    ("dormir", "past"): "dormí dormiste durmió dormimos durmieron",
    ("pedir", "past"): "pedí pediste pidió pedimos pidieron",
    ("ir", "present"): "voy vas va vamos van",
    ("ir", "past"): "fui fuiste fue fuimos fueron",
    ("ir", "imperfect"): "iba ibas iba íbamos iban",
    ("ver", "past"): "vi viste vio vimos vieron",
    ("ver", "imperfect"): "veía veías veía veíamos veían",
    ("leer", "past"): "leí leíste leyó leímos leyeron",
}
HABER = "he has ha hemos han"

COMPLEMENTS = {
    "hablar": ("con mi madre", "español", "inglés"),
    "comer": ("pan", "arroz", "en casa"),
    "vivir": ("en Madrid", "aquí", "con mi madre"),
    "ser": ("feliz/felices", "fuerte/fuertes"),
    "estar": ("en casa", "aquí", "bien"),
    "ir": ("a casa", "a Madrid", "al mar"),
    "tener": ("un perro", "un libro", "hambre"),
    "hacer": ("café", "pan", "arroz"),
    "decir": ("la verdad", "esto"),
    "ver": ("el mar", "la casa", "un perro"),
    "querer": ("agua", "café", "un perro"),
    "buscar": ("un libro", "agua", "la verdad"),
    "llegar": ("a casa", "tarde", "a Madrid"),
    "empezar": ("el libro", "tarde", "bien"),
    "leer": ("un libro", "el libro", "en casa"),
    "dormir": ("bien", "en casa", "aquí"),
    "pedir": ("pan", "agua", "café"),
    "jugar": ("con el perro", "en casa", "aquí"),
}

TIMES = {
    "present": ("hoy", "siempre", "cada día"),
    "past": ("ayer", "anoche", "la semana pasada"),
    "imperfect": ("antes", "entonces", "cada día"),
    "future": ("mañana", "esta semana"),
    "progressive": ("ahora", "hoy"),
    "perfect": ("hoy", "esta semana"),
}

SUBJECTS = {
    "1s": ("yo",),
    "2s": ("tú",),
    "3s": ("él", "ella", "usted", "Luis"),
    "1p": ("nosotros", "nosotras", "Ana y yo"),
    "3p": ("ellos", "ellas", "ustedes", "Ana y Luis"),
}


@cache
def conjugate(verb: str, tense: str) -> tuple[Words, ...]:
    """Return the verb group for each of `PERSONS`. Raises KeyError for an unknown verb or tense.

    ``conjugate("hablar", "perfect")[0]`` is ``("he", "hablado")``.
    """
    if verb not in COMPLEMENTS:
        raise KeyError(f"{verb!r} is not one of the Spanish verbs: {', '.join(COMPLEMENTS)}")
    if tense == "progressive":
        return tuple((form, gerund(verb)) for form in _present("estar"))
    if tense == "perfect":
        return tuple((form, participle(verb)) for form in HABER.split())
    if (verb, tense) in IRREGULAR:
        forms = IRREGULAR[verb, tense].split()
    elif tense in ("present", "past"):
        forms = _present(verb) if tense == "present" else _past(verb)
    else:
        stem = verb[:-2] if tense == "imperfect" else FUTURE_STEM.get(verb, verb)
        forms = [stem + ending for ending in _endings(verb, tense)]
    return tuple((form,) for form in forms)


def participle(verb: str) -> str:
    """Return the past participle: hablado, comido; hecho."""
    return PARTICIPLE.get(verb) or verb[:-2] + ("ado" if verb.endswith("ar") else "ido")


def gerund(verb: str) -> str:
    """Return the gerund: hablando, comiendo; durmiendo, leyendo."""
    return GERUND.get(verb) or verb[:-2] + ("ando" if verb.endswith("ar") else "iendo")


def _endings(verb: str, tense: str) -> list[str]:
    return ENDINGS[tense][verb[-2:]].split()


def _present(verb: str) -> list[str]:
    if (verb, "present") in IRREGULAR:
        return IRREGULAR[verb, "present"].split()
    plain, stressed = verb[:-2], _replace_last(verb[:-2], *STEM_VOWEL.get(verb, ("", "")))
    stems = (stressed, stressed, stressed, plain, stressed)
    forms = [stem + ending for stem, ending in zip(stems, _endings(verb, "present"), strict=True)]
    return [FIRST_PERSON.get(verb, forms[0]), *forms[1:]]


def _past(verb: str) -> list[str]:
    stem = first = verb[:-2]
    if verb.endswith("ar") and stem[-1] in SOFTENED:
        first = stem[:-1] + SOFTENED[stem[-1]]
    mine, *others = _endings(verb, "past")
    return [first + mine, *(stem + ending for ending in others)]


def _replace_last(stem: str, old: str, new: str) -> str:
    return new.join(stem.rsplit(old, 1)) if old else stem


SPANISH = Language(
    code="es",
    tenses=("present", "past", "imperfect", "future", "progressive", "perfect"),
    subjects=SUBJECTS,
    complements=COMPLEMENTS,
    times=TIMES,
    stative=frozenset({"ser", "estar", "ir", "querer", "tener"}),
    conjugate=conjugate,
    negate=lambda cell, group: ("no", *group),
)
