"""States of every shape for the differential test of routing: kind, expected language, state.

Expected is "en", "other" or None where nobody could say. Texts come from data/chat.tsv and from here.
"""

ENGLISH = [
    "My order arrived with a broken screen and I would like a replacement.",
    "Could you please tell me when the technician will come to our office?",
    "I can't find the setting to turn off weekly emails.",
    "The invoice shows the wrong company name, please correct it.",
    "We were very happy with the support we received last week.",
    "How do I add another user to my team?",
    "The package was left in the rain and the contents are ruined.",
    "Please close this ticket, the problem has gone away.",
]

TRACE = """Traceback (most recent call last):
  File "app/main.py", line 42, in handle
    result = client.send(payload)
ConnectionError: the remote host closed the connection"""

# Latin names, brands and codes around another script, and the reverse.
MIXED_SCRIPTS = [
    ("other", "我的 iPhone 15 Pro 无法连接 WiFi"),
    ("other", "ORDER-2231 の配送状況を教えてください"),
    ("other", "Windows 업데이트 후 부팅이 안 돼요"),
    ("other", "Не работает Bluetooth на MacBook Air"),
    ("other", "Το Netflix δεν ανοίγει στην τηλεόραση Samsung"),
    ("other", "تطبيق WhatsApp لا يعمل على هاتفي"),
    ("other", "मेरा Amazon ऑर्डर अभी तक नहीं आया"),
    ("other", "ไม่สามารถเข้าสู่ระบบ Facebook ได้"),
    ("other", "GitHub Actions 一直失败,请帮忙看一下"),
    ("other", "Excel ファイルが開けません。error 0x80070005"),
    ("other", "Google Pay не проходит оплата, error code PAY-402"),
    ("other", "איך מבטלים את Spotify Premium?"),
    ("other", "Hello, 请问我的退款什么时候到账?"),
    ("other", "Hi team, у меня не открывается личный кабинет, помогите пожалуйста"),
    ("en", "The Greek letter α appears in the formula on page two."),
    ("en", "Set μ to 0.5 and σ to 1 before you run the model."),
    ("en", "The author Дмитрий Иванов signed the contract yesterday."),
    ("en", "Please change the account holder's name to Ελένη Παπαδοπούλου on the invoice."),
    ("en", "We measured a resistance of 40 Ω across the terminals."),
    ("en", "My colleague 王伟 will pick up the package at the front desk tomorrow morning."),
]

ENGLISH_WITH_NAMES = [
    "José García called about the delivery to São Paulo and wants us to ring him back.",
    "Please forward the contract to Jürgen Müller at Bäckerei Schäfer in Düsseldorf.",
    "François Côté from Montréal asked whether the café voucher is still valid.",
    "I met Zoë and Chloë at the Beyoncé concert and we all lost our tickets.",
    "The flight from Málaga to Kraków was cancelled without any notice.",
    "Our naïve fiancé ordered the crème brûlée and never paid for it.",
    "Søren Kierkegaard's book was delivered damaged, can I return it?",
    "Nguyễn Văn An opened a ticket about the missing invoice.",
]

NO_TEXT = ["", " ", "123", "12/03/2024", "🙂🙂🙂", "?!", "—", "€ 49.90", "+49 30 123456", {}, [], {"amount": 12, "paid": True}]

CODE = [
    "for (let i = 0; i < items.length; i++) { total += items[i].price; }",
    "def handler(event, context):\n    return {'status': 200}",
    "SELECT id, name FROM customers WHERE country = 'DE' ORDER BY name;",
    "https://example.com/a/b?c=d",
    "jane.doe@example.com",
    "/usr/local/lib/node_modules/npm/bin/npm-cli.js",
    "ERR_TLS_CERT_ALTNAME_INVALID",
    "v1.2.3-beta.4",
]

SPECIAL = [
    ("other", "𝓗𝓮𝓵𝓵𝓸 𝔀𝓸𝓻𝓵𝓭"),
    ("en", "Ｐｌｅａｓｅ ｃａｎｃｅｌ ｍｙ ｏｒｄｅｒ ｔｏｄａｙ"),
    (None, "MON DES EST LA"),
    ("en", "PLEASE CANCEL MY SUBSCRIPTION TODAY AND SEND ME THE MONEY BACK"),
    ("other", "QUIERO CANCELAR MI SUSCRIPCIÓN HOY MISMO Y QUE ME DEVUELVAN EL DINERO"),
    ("other", "ICH MÖCHTE MEIN ABO KÜNDIGEN UND DAS GELD ZURÜCK"),
    ("other", "ⲁⲛⲟⲕ ⲡⲉ ⲡⲟⲩⲟⲉⲓⲛ ⲙⲡⲕⲟⲥⲙⲟⲥ"),
    ("other", "ᏣᎳᎩ ᎦᏬᏂᎯᏍᏗ"),
    ("other", "ⵜⴰⵎⴰⵣⵉⵖⵜ ⵜⵓⵜⵍⴰⵢⵜ"),
    ("other", "ᠮᠣᠩᠭᠣᠯ ᠬᠡᠯᠡ"),
    ("other", "ﾊﾝｶｸｶﾅ ﾃﾞｽ"),
    ("other", "ㄅㄆㄇㄈ ㄉㄊㄋㄌ"),
    ("other", "𠮷野家で食べました"),
]


def states(chat):
    """All states; `chat` are the rows of data/chat.tsv as (language, text)."""
    by_language = {}
    for language, text in chat:
        by_language.setdefault(language, []).append(text)
    foreign = {language: texts for language, texts in by_language.items() if language != "en"}
    for language, texts in foreign.items():
        yield from (("line", "other", text) for text in texts[:3])
    yield from (("line", "en", text) for text in [*by_language["en"], *ENGLISH, *ENGLISH_WITH_NAMES])
    for index, (language, texts) in enumerate(foreign.items()):
        english = ENGLISH[index % len(ENGLISH)]
        message = f"{texts[0]} {texts[1]}"
        if index % 4 == 0:
            yield "object", "other", {"id": "T-10293", "channel": "email", "message": message}
        elif index % 4 == 1:
            turns = [("user", message), ("assistant", "Thanks for writing to us, which order is it about?"), ("user", texts[0])]
            yield "conversation", "other", [{"role": role, "content": text} for role, text in turns]
        elif index % 4 == 2:
            yield "trace", "other", f"{message}\n{TRACE}"
        else:
            yield "field", "other", {"internal_note": english, "customer_wrote": message}
    for index, text in enumerate(ENGLISH):
        name = ["José García", "Zoë Müller", "Łukasz Wójcik", "Siobhán Ó Briain"][index % 4]
        yield "object", "en", {"customer": name, "city": "São Paulo", "message": text}
        yield "object", "en", {"id": f"A-{index}", "status": "open", "message": text, "tags": ["billing", "urgent"]}
        reply = {"role": "assistant", "content": "Sure, I can help you with that."}
        yield "conversation", "en", [{"role": "user", "content": text}, reply, {"role": "user", "content": "thanks"}]
        yield "trace", "en", f"{text}\n{TRACE}"
    yield from (("scripts", expected, text) for expected, text in MIXED_SCRIPTS)
    yield from (("no text", None, state) for state in NO_TEXT)
    yield from (("code", None, text) for text in CODE)
    yield from (("special", expected, text) for expected, text in SPECIAL)
