"""Sentence templates for laya-tiny. Training and held-out templates have no sentence in common, only their words."""

TOPICS = ("billing", "technical", "account", "shipping", "returns")
URGENCIES = ("no hurry", "this week", "today", "emergency")
TONES = ("nice", "angry")

# {p} product, {n} number, {d} weekday, {c} city, {m} amount
TOPIC_SENTENCES = {
    "train": {
        "billing": (
            "I was charged {m} twice for the {p}.",
            "My invoice {n} shows the wrong amount.",
            "A payment of {m} was taken from my card that I do not recognise.",
            "You billed my card for a {p} that I never ordered.",
            "Please give me my money back, {m} was charged by mistake.",
            "The credit on my invoice is missing.",
            "Why does the bill say {m} when the price is lower?",
            "I paid for the {p} and the card was charged again on {d}.",
        ),
        "technical": (
            "The app crashes every time I open the {p} page.",
            "My {p} shows error {n} and stops working.",
            "The screen freezes after the update.",
            "The software closes when I press start.",
            "The {p} loses its connection every few minutes.",
            "Error code {n} is on the screen of the {p}.",
            "Since the update on {d} nothing is working, it freezes.",
            "The app is broken, it shows error {n} and crashes.",
        ),
        "account": (
            "I forgot my password and cannot log in.",
            "My account is locked since {d}.",
            "The reset link for my password never reaches my email.",
            "Please change the email address of my user profile.",
            "I want to delete my account and my profile.",
            "My login does not accept the password.",
            "How do I update the phone number in my profile?",
            "Someone has changed my user name and the login is locked.",
        ),
        "shipping": (
            "The parcel with the {p} has not arrived.",
            "Tracking says the package is still in {c}.",
            "The courier left my delivery at another address.",
            "My order {n} was never delivered to {c}.",
            "When will the package reach {c}?",
            "The delivery of the {p} is late, it should have come on {d}.",
            "The tracking number {n} does not move.",
            "The courier lost the parcel between {c} and here.",
        ),
        "returns": (
            "I want to send the {p} back.",
            "How can I exchange the {p} for another colour?",
            "The size of the {p} is wrong, I would like to return it.",
            "I need a return label for the {p}.",
            "Where do I send back the {p} that I do not like?",
            "Please exchange the {p}, the size does not fit.",
            "I would like to return order {n}.",
            "The return of the {p} has no label.",
        ),
    },
    "held-out": {
        "billing": (
            "My card was charged {m} again.",
            "The amount on invoice {n} is wrong.",
            "I do not recognise the payment of {m} from {d}.",
        ),
        "technical": (
            "Every few minutes the {p} freezes with error {n}.",
            "The app stops working after I press start.",
            "The software crashes since the update.",
        ),
        "account": (
            "My password is not accepted and the account is locked.",
            "Please delete my user profile.",
            "I cannot log in, the reset email never arrives.",
        ),
        "shipping": (
            "The package has not reached {c}.",
            "The courier has lost the delivery of my {p}.",
            "Tracking says that parcel {n} is late.",
        ),
        "returns": (
            "I would like to exchange the {p}, the size is wrong.",
            "Where is the label to send the {p} back?",
            "How do I return the {p}?",
        ),
    },
}

# Each level's phrases go into the frames, so that a held-out frame is new while its phrase is known.
URGENCY_PHRASES = {
    "no hurry": ("whenever you like", "when you have time", "some day, there is no rush"),
    "this week": ("this week", "before the week ends", "some time this week"),
    "today": ("today", "before tonight", "by the end of today"),
    "emergency": ("immediately", "right now", "immediately, it is very urgent"),
}
URGENCY_FRAMES = {
    "train": (
        "I need it {u}.",
        "It must be done {u}.",
        "Please answer {u}.",
        "Do it {u}.",
        "Can you look at it {u}?",
        "I expect help {u}.",
        "Please handle this {u}!",
        "It has to be solved {u}.",
        "I want an answer {u}.",
    ),
    "held-out": ("This must be solved {u}.", "Please help me {u}.", "I need an answer {u}."),
}
URGENCY_SENTENCES = {
    "train": {
        "no hurry": ("There is no hurry.", "Take your time.", "No rush.", "It can wait, I am in no hurry."),
        "this week": ("This week is fine.", "Some time this week would be right."),
        "today": ("Today would be right.", "Tonight is too late, so do it today."),
        "emergency": ("This is an emergency.", "It is very urgent!", "Help, it is an emergency."),
    },
    "held-out": {
        "no hurry": ("There is no rush, take your time.", "I am in no hurry at all."),
        "this week": ("An answer some time this week is fine.",),
        "today": ("An answer before tonight would be right.",),
        "emergency": ("Please act, it is an emergency and very urgent.",),
    },
}

TONE_SENTENCES = {
    "train": {
        "nice": (
            "Thank you very much.",
            "Thanks for your kind help.",
            "Kind regards, {w}.",
            "Have a nice day!",
            "Thanks a lot, regards.",
            "You are very kind.",
            "A nice day to you and thanks.",
        ),
        "angry": (
            "Your service is terrible.",
            "I am furious.",
            "This is unacceptable!",
            "I am very angry.",
            "What a terrible company!",
            "It is unacceptable and I am furious about it.",
            "I have never been so angry.",
        ),
    },
    "held-out": {
        "nice": ("Thanks and kind regards, {w}.", "Thank you, have a nice day."),
        "angry": ("I am furious, this is terrible.", "Unacceptable, I am angry!"),
    },
}

CHOICE_TEXTS = {
    "train": (
        "Which team should handle this?",
        "What is the topic?",
        "Select the topic of the message.",
        "Which team is right?",
        "What is this message about?",
        "Select a team.",
    ),
    "held-out": ("Select the right team.", "Which topic is this message about?"),
}
SCORE_TEXTS = {
    "train": (
        "Rate the urgency.",
        "How urgent is it?",
        "How soon must this be handled?",
        "Rate how urgent this is.",
        "How soon is an answer needed?",
        "What is the urgency of the message?",
    ),
    "held-out": ("How urgent is the message?", "Rate how soon this must be handled."),
}
# statement -> texts; a statement is a topic, "urgent" or "angry"
NOUL_TEXTS = {
    "train": {
        **{
            topic: (
                f"Is this about {topic}?",
                f"The message is about {topic}.",
                f"Should {topic} handle it?",
                f"The topic is {topic}.",
                f"Is {topic} the right team?",
            )
            for topic in TOPICS
        },
        "urgent": (
            "Is it an emergency?",
            "Does it need help immediately?",
            "It must be handled immediately.",
            "The message is an emergency.",
            "Must it be solved right now?",
        ),
        "angry": (
            "Is the customer angry?",
            "The tone is angry.",
            "Is the customer furious?",
            "The customer is angry.",
            "Is this message angry?",
            "The message is furious.",
        ),
    },
    "held-out": {
        **{topic: (f"Is the message about {topic}?", f"This is about {topic}.") for topic in TOPICS},
        "urgent": ("Must it be handled immediately?", "This is an emergency."),
        "angry": ("Is the tone angry?", "The customer is furious."),
    },
}
STATEMENTS = tuple(NOUL_TEXTS["train"])

DESCRIPTIONS = {
    "billing": ("payments, charges and invoices", "money and cards"),
    "technical": ("errors and crashes of the app", "software that is not working"),
    "account": ("login, password and profile", "user profile and password"),
    "shipping": ("delivery and tracking", "parcels and couriers"),
    "returns": ("send back or exchange", "return labels and sizes"),
}
LEVELS = (
    ("no hurry", "this week", "today", "immediately"),
    ("can wait", "this week is fine", "needs it today", "emergency"),
)
NOUL_LABELS = ({"false": "no", "true": "yes"}, {"false": "B", "true": "A"}, {"false": "wrong", "true": "right"})

OPENINGS = ("Hello,", "Hi,", "Good morning,", "Hello, this is {w}.", "Dear team,", "")
FILLERS = {
    "p": "kettle lamp bike keyboard speaker jacket toaster charger printer blender tent mattress laptop headset table "
    "helmet watch chair monitor phone tablet router camera desk backpack shoes".split(),
    "d": "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split(),
    "c": "Ghent Porto Prague Dublin Madrid Leeds Vienna Berlin Lyon Oslo Turin Utrecht".split(),
    "w": "Anna Carla David Emma Farid Grace Hugo Irene Jonas Laura Marco Nina Oscar Priya "
    "Quinn Rosa Tina Victor Wendy Yara".split(),
}
