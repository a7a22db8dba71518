"""Texts that the golden cases are made of: ordinary messages, many scripts, and texts that trip tokenizers."""

OPENINGS = (
    "Hello, this is Carla from Madrid.",
    "Good morning,",
    "Back again about order 4471.",
    "Hi team, Oscar here.",
    "To whom it may concern,",
)

TOPIC_SENTENCES = {
    "billing": (
        "I was charged twice on my card for the kettle.",
        "The invoice shows 59.90 euros and I never bought that.",
        "Please refund the payment that was taken on Monday.",
    ),
    "technical": (
        "The app closes with error code 502 every time I open it.",
        "My router keeps losing the connection and the screen freezes.",
        "The software stopped working after the update.",
    ),
    "account": (
        "I forgot my password and the reset link never reaches my email.",
        "My login is locked and I cannot change my phone number.",
        "Please delete my user profile.",
    ),
    "shipping": (
        "The parcel has not arrived and the tracking says nothing.",
        "The courier left the package at another address.",
        "When will the delivery of my bike reach Lyon?",
    ),
    "returns": (
        "I want to send the shoes back because the size is wrong.",
        "How do I exchange the jacket for another colour?",
        "I need a return label for the lamp.",
    ),
}

URGENCY_SENTENCES = (
    "There is no hurry at all.",
    "Some time this week would be fine.",
    "I need an answer today.",
    "This is an emergency, it must be solved immediately.",
)

TONE_SENTENCES = {
    "angry": ("Your service is terrible and I am furious.", "This is unacceptable!"),
    "kind": ("Thank you very much for your help.", "Kind regards, Nina."),
}

TOPIC_DESCRIPTIONS = {
    "billing": "charges, payments and invoices",
    "technical": "errors and crashes of the software",
    "account": "login, password and profile",
    "shipping": "delivery and tracking of a package",
    "returns": "send back or exchange something",
}

URGENCY_LEVELS = ("no hurry", "this week", "today", "immediately, an emergency")

# One sentence a script, of characters that have long been in Unicode, so that no regex engine's tables decide.
SCRIPTS = {
    "german": "Die Rechnung über 49,90 € ist falsch – bitte prüfen Sie das schnellstmöglich!",
    "french": "L’écran reste figé depuis la mise à jour ; c’est très gênant.",
    "turkish": "Şifremi unuttum, İstanbul'daki hesabım kilitlendi. Iğdır ılık.",
    "vietnamese": "Đơn hàng của tôi vẫn chưa được giao, xin hãy kiểm tra.",
    "polish": "Zażółć gęślą jaźń: paczka zaginęła w Łodzi.",
    "russian": "Посылка не пришла, а деньги списали дважды.",
    "greek": "Ξέχασα τον κωδικό μου, ΟΔΥΣΣΕΎΣ.",
    "hebrew": "החבילה לא הגיעה, אני מאוד כועס!",
    "arabic": "لم تصل الشحنة حتى الآن، أريد استرداد أموالي ١٢٣.",
    "persian": "می‌خواهم سفارشم را پس بدهم ۴۵۶.",
    "hindi": "मेरा पैकेज अभी तक नहीं आया, कृपया जल्दी करें।",
    "tamil": "என் கணக்கு பூட்டப்பட்டுள்ளது.",
    "thai": "ฉันถูกเรียกเก็บเงินสองครั้งในเดือนนี้",
    "amharic": "ክፍያው ሁለት ጊዜ ተወስዷል።",
    "georgian": "ანგარიში დაბლოკილია.",
    "chinese": "我的包裹还没有到,请尽快处理!订单号:12345。",
    "japanese": "アプリが起動しません。至急対応してください。カタカナ",
    "korean": "비밀번호를 잊어버렸어요. 오늘 안에 해결해 주세요.",
}

# name -> text; each holds one way in which two tokenizers, or two languages' strings, drift apart.
ODD_TEXTS = {
    "combining": "Cafe\u0301 nai\u0308ve A\u030a \u212b \u2126 a\u0323\u0307 a\u0307\u0323 "
    "\u1112\u1161\u11ab \ufb01ne \u00bd",
    "emoji-zwj": "Thanks \U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466 \U0001f44d\U0001f3fd "
    "\U0001f1eb\U0001f1f7 \u2764\ufe0f \U0001f3f3\ufe0f\u200d\U0001f308",
    "spaces": "a\u00a0b \u00a0 c\u0085d\u2028e\u2029f\u3000g\u2003h\u200bi\u202fj\u1680k  l   m\t\tn\r\n\r\no ",
    "bom-zero-width": "\ufeffThe \ufeff card\u200d was\u200c charged\u2060 twice\u00ad\ufeff",
    "python-spaces": "a\x1cb\x1dc\x1ed\x1fe\x0bf\x0cg",
    "digits": "\uff11\uff12\uff13 \u0661\u0662\u0663 \u2167 \u00b2\u2075 \u2460 12345678901 3.14 "
    "1,000 0x1F \u096a\u096b",
    "contractions": "I'm sure it's theirs, we've said they'll come; you'd don't I\u2019m IT'S 'tis rock'n'roll 'S 'll",
    "control": "a\x00b\x01c\x07d\x08e\x1bf\x7fg\x80h\x9fi",
    "astral": "\U0001d400\U0001d401 \U00010400\U00010428 \U00020000 \U0001f600\uff5e\U0001f601 \ufffd \ue000",
    "case-mapping": "STRASSE stra\u00dfe \u0130I\u0131i \u03a3\u03c3\u03c2 \u01c5 \u1e9e",
    "code": 'if (a<=b && c!=d) { return x[0]->y::z; }  // TODO\n\tprint(f"{v!r:>10}")\n',
    "markup": "<b>Refund</b> &amp; <!-- now --> http://shop.example/a?b=1&c=%20#d user@shop.example",
    "repeated": "!!!!!!!! ???? ...... ------ ====== aaaaaaaaaaaaaaaaaaaaaaaa \u00e9\u00e9\u00e9\u00e9 \n\n\n\n    end",
    "quotes": "\"double\" 'single' `back` \u201ccurly\u201d \u00abguillemets\u00bb \\n \\u00e9 \\\\ /",
}

INSTRUCTIONS_IN_OTHER_SCRIPTS = {
    "zh": "客户生气吗?",
    "de": "Ist der Kunde verärgert?",
    "ar": "هل العميل غاضب؟",
    "ja": "返金を求めていますか。",
}
