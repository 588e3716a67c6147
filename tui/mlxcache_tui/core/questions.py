"""Prepared questions for the composer: what a customer might ask under each shipped policy."""

import msgspec


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A short label for the screen and the user message itself."""

    label: str
    text: str


RETURNS = (
    Question(
        label="changed mind",
        text="A customer opened an accessory and changed their mind. Can they return it?",
    ),
    Question(label="arrived damaged", text="The product arrived damaged. Can they return it?"),
    Question(
        label="no receipt",
        text="A customer wants to return an unopened accessory but has no receipt. Can they return it?",
    ),
    Question(
        label="unopened after 40 days",
        text="A customer wants to return an unopened accessory 40 days after delivery. Can they return it?",
    ),
)

BY_POLICY: dict[str, tuple[Question, ...]] = {
    "returns": RETURNS,
    "warranty": (
        Question(label="liquid", text="A customer spilled coffee over a router and it stopped. Is that covered?"),
        Question(label="battery", text="A battery holds 70 per cent of its capacity after 10 months. Is that covered?"),
        Question(
            label="second hand", text="A customer bought a display second-hand without an invoice. Is it covered?"
        ),
        Question(label="third repair", text="The same fault came back after two repairs. What happens now?"),
    ),
    "shipping": (
        Question(label="late express", text="An express parcel arrived a day late. Is the delivery cost refunded?"),
        Question(label="other address", text="The parcel is with the carrier. Can we still change the address?"),
        Question(label="lost", text="The tracking has shown no event for eight working days. What can we do?"),
        Question(label="post box", text="A customer wants delivery to a post box. Is that possible?"),
    ),
    "privacy": (
        Question(label="spouse calls", text="A customer's husband asks where her order is. May I tell him?"),
        Question(label="deletion", text="A customer wants everything deleted, invoices too. What do we delete?"),
        Question(label="recording", text="May I record this call to train new colleagues?"),
        Question(label="wrong person", text="I sent an invoice to the wrong customer. What do I do first?"),
    ),
    "handbook": (
        Question(label="late parcel", text="A parcel was promised for yesterday and is not here. Do we act already?"),
        Question(
            label="swollen battery", text="A customer wants to send in a laptop whose battery is swollen. Can they?"
        ),
        Question(
            label="charged twice", text="A customer's card was charged twice for one order. What do I check first?"
        ),
        Question(label="bad review", text="May I offer a voucher if the customer takes back a bad review?"),
    ),
    "japanese-returns": (
        Question(
            label="気が変わった",
            text="お客様がアクセサリーを開封した後、気が変わりました。返品できますか?",
        ),
        Question(label="破損", text="商品が届いたときに破損していました。返品できますか?"),
        Question(
            label="レシートなし", text="未開封のアクセサリーを返品したいのですが、レシートがありません。返品できますか?"
        ),
        Question(label="40日後", text="お届けから40日たった未開封のアクセサリーは返品できますか?"),
    ),
    "japanese-warranty": (
        Question(label="水ぬれ", text="ルーターにコーヒーをこぼしたら動かなくなりました。保証の対象ですか?"),
        Question(label="バッテリー", text="10か月使ったバッテリーの容量が70パーセントになりました。保証の対象ですか?"),
        Question(label="中古", text="請求書のない中古のディスプレイは保証の対象ですか?"),
        Question(label="3回目の修理", text="2回修理した後で同じ不具合が出ました。どうなりますか?"),
    ),
    "japanese-handbook": (
        Question(label="遅れた荷物", text="昨日届くはずの荷物がまだ届いていません。もう対応を始めますか?"),
        Question(
            label="電池の膨らみ", text="バッテリーが膨らんだノートパソコンを送りたいそうです。送ってもらえますか?"
        ),
        Question(label="二重請求", text="一つの注文でカードに二回請求されたそうです。まず何を確認しますか?"),
        Question(label="悪い評価", text="悪い評価を消してもらう代わりに商品券を渡してもよいですか?"),
    ),
}


def questions_for(policy: str) -> tuple[Question, ...]:
    """The questions for a policy by its label; a policy of the person's own gets the ones about returns."""
    return BY_POLICY.get(policy, RETURNS)
