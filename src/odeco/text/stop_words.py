"""Stop words: the grammar of a language, which is in every document and nobody's topic; and which language it is.

The English list is scikit-learn's. The others hold the most frequent articles, pronouns, prepositions, conjunctions and
auxiliary verbs, in lower case and of two letters or more (shorter ones are no words to `odeco.text.Vectorizer`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from itertools import islice

LANGUAGES = {
    "en": "English",
    "de": "German",
    "es": "Spanish",
    "fr": "French",
    "it": "Italian",
    "nl": "Dutch",
    "pt": "Portuguese",
}
_ALIASES = {"english": "en"}

_WORDS = {
    "de": """
        aber alle allem allen aller alles als also am an andere anderen anderer anderes auch auf aus bei beim bin bis
        bist da dabei dafür damit dann daran darauf das dass daß dazu dein deine dem den denn der des dessen dich die
        dies diese diesem diesen dieser dieses dir doch dort du durch ein eine einem einen einer eines einige er es
        etwas euch euer eure für gegen gewesen hab habe haben hat hatte hatten hier hin hinter ich ihm ihn ihnen ihr
        ihre ihrem ihren ihrer ihres im in indem ins ist ja jede jedem jeden jeder jedes jene jenem jenen jener jenes
        jetzt kann kannst kein keine keinem keinen keiner können könnte machen man manche mehr mein meine meinem meinen
        meiner mich mir mit muss musste nach nein nicht nichts noch nun nur ob oder ohne sehr sein seine seinem seinen
        seiner seines seit selbst sich sie sind so solche soll sollte sondern sonst über um und uns unser unsere unter
        viel vom von vor wann war waren warst was weg weil weiter welche welchem welchen welcher wenn wer werde werden
        wie wieder will wir wird wirst wo wollen wollte wurde wurden würde würden während zu zum zur zwar zwischen
    """,
    "es": """
        al algo algunas alguno algunos ante antes aquel aquella así aun aunque años bajo bien cada casi como con contra
        cual cuales cuando de del desde donde dos durante el él ella ellas ellos en entre era eran es esa esas ese eso
        esos esta está están estaba estado estar estas este esto estos fin fue fueron gran ha haber había habían han
        hasta hay he hoy la las le les lo los luego más me menos mi mis mismo mucho muchos muy nada ni no nos nosotros
        nuestra nuestro os otra otras otro otros para pero poco por porque pues que qué quien quienes se sea según ser
        será si sí sido siempre sin sobre solo sólo son su sus también tan tanto te tiene tienen toda todas todavía
        todo todos tras tu tus un una unas uno unos usted vez ya yo
    """,
    "fr": """
        afin ai ainsi alors après au aucun aucune aussi autre autres aux avant avec avez avoir avons ayant bien car ce
        ceci cela celle celles celui ces cet cette ceux chaque chez ci comme comment dans de depuis des deux doit donc
        dont du elle elles en encore entre es est et étaient était étant été être eu eux fait faire fois font hors ici
        il ils je jusqu jusque la là le les leur leurs lors lui ma mais même mêmes mes moi moins mon ne ni non nos
        notre nous on ont or ou où par parce pas pendant peu peut peuvent plus pour pourquoi qu quand que quel quelle
        quelles quelques quels qui quoi sa sans se selon sera seront ses si soi soit son sont sous suis sur ta te tes
        toi ton tous tout toute toutes très trop tu un une va vers voici voilà vos votre vous
    """,
    "it": """
        ad agli ai al alcune alcuni all alla alle allo altra altre altri altro anche ancora anni che chi ci come con
        contro così cosa cui da dagli dai dal dall dalla dalle degli dei del dell della delle dello di dopo dove due
        ed era erano essere fa fatto fino fra già gli ha hai hanno ho il in io la le lei li lo loro lui ma me mentre
        mi mia mio molto ne negli nei nel nell nella nelle nello no noi non nostra nostro ogni oltre ora per perché
        perciò più poi prima proprio può qual quale quali quando quanto quella quelle quelli quello questa queste
        questi questo qui quindi sarà se sei sempre senza sia si sì solo sono sopra sotto sta stata stati stato stesso
        su sua sue sugli sui sul sull sulla sulle suo suoi tra tu tua tuo tutta tutte tutti tutto un una uno vi voi
    """,
    "nl": """
        aan al alle alleen als altijd andere ben bij daar dan dat de deze die dit doch doen door dus een eens en er
        ergens ge geen geweest haar had hadden heb hebben heeft hem het hier hij hoe hun iemand iets ik in is ja je
        kan kon konden kunnen maar me meer men met mij mijn moet moeten na naar niet niets nog nu of om omdat onder
        ons onze ook op over reeds te tegen toch toen tot tussen twee uit uw van veel voor want waren was wat we wel
        welke werd werden wezen wie wij wil worden wordt zal ze zei zelf zich zij zijn zo zonder zou zouden
    """,
    "pt": """
        ainda algo alguns ano anos antes ao aos apenas aquela aquele aqui as às assim até bem cada com como contra da
        das de dela dele deles depois desde dessa desse desta deste do dois dos durante ela elas ele eles em entre
        era eram essa essas esse esses esta está estão estar estas estava este estes eu foi foram há isso isto já lhe
        lhes lo mais mas me mesma mesmo meu meus minha muito muitos na não nas nem nessa nesse nesta neste no nos nós
        nossa nosso num numa nunca onde os ou outra outras outro outros para pela pelas pelo pelos pode podem por
        porque pouco qual quando quase que quem se seja sem sempre ser será seu seus si sido sob sobre sua suas só são
        também tanto te tem têm tinha toda todas todo todos tu tudo um uma umas uns vai você vocês
    """,
}

_TOKEN = re.compile(r"\w\w+")
LOOKED_AT = 2000  # documents
_CHARACTERS = 2000  # of each
_LEAST_SHARE = 0.2  # of the words are stop words in running text of any of the languages; titles and lists have fewer
_LEAST_LEAD = 1.25  # times as many as in the second best: related languages share some


def stop_words_of(language: str) -> frozenset[str]:
    """The stop words of a language, by its code ("en", "de", ...); "english" is "en".

    Examples
    --------
    >>> from odeco.text import stop_words_of
    >>> "the" in stop_words_of("en"), "und" in stop_words_of("de")
    (True, True)
    """
    code = _ALIASES.get(language, language)
    if code not in LANGUAGES:
        raise ValueError(f"stop words are known of {', '.join(LANGUAGES)}, got {language!r}: give a list of your own.")
    return _listed(code)


@cache
def _listed(code: str) -> frozenset[str]:
    if code == "en":
        from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

        return frozenset(ENGLISH_STOP_WORDS)
    return frozenset(_WORDS[code].split())


def detect_language(documents: Iterable[str]) -> str | None:
    """The language whose stop words texts are full of, as a code; None where no language has clearly the most.

    The first documents are looked at. At least a fifth of their words must be stop words, as in running text, and a
    quarter more than of any other language.

    Examples
    --------
    >>> from odeco.text import detect_language
    >>> detect_language(["It was the best of times, it was the worst of times."])
    'en'
    >>> detect_language(["socket wrench 12 mm chrome", "hex bolt steel M8"]) is None
    True
    """
    texts = (text[:_CHARACTERS].lower() for text in islice(documents, LOOKED_AT))
    words = [word for text in texts for word in _TOKEN.findall(text)]
    shares = sorted(((sum(word in _listed(code) for word in words), code) for code in LANGUAGES), reverse=True)
    (most, best), (second, _) = shares[:2]
    clear = most >= max(_LEAST_SHARE * len(words), _LEAST_LEAD * second)
    return best if words and clear else None
