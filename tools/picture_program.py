"""The program in the README's picture: a shop that reads its catalogue, orders and mail, and keeps what it needs."""

import collections
import configparser
import csv
import dataclasses
import decimal
import email
import email.policy
import io
import json
import re
import string
import xml.dom.minidom
import xml.etree.ElementTree

ARTICLES, ORDERS, MAILS, CUSTOMERS = 2500, 6000, 900, 5000


@dataclasses.dataclass
class Order:
    number: int
    customer: str
    lines: list
    total: decimal.Decimal = decimal.Decimal(0)


class Catalogue:
    def __init__(self, text):
        self.document = xml.dom.minidom.parseString(text)
        self.articles = {item.get("id"): item for item in xml.etree.ElementTree.fromstring(text)}

    def price(self, article):
        return decimal.Decimal(self.articles[article].findtext("price"))


class Mailbox:
    def __init__(self, texts):
        self.messages = [self.read(text) for text in texts]

    def read(self, text):
        message = email.message_from_string(text, policy=email.policy.default)
        message.get_content_type(), message["subject"], message["to"]
        return message


class Search:
    """Which orders mention a word."""

    def __init__(self):
        self.places = collections.defaultdict(list)

    def add(self, order):
        for word in self.words(order):
            self.places[word].append(order.number)

    def words(self, order):
        text = " ".join([order.customer, *(line["article"] for line in order.lines)])
        return re.findall(r"[\w-]+", text)


def write_catalogue():
    items = (
        f'<article id="article-{number}"><name>Thing {number}</name><price>{number % 90}.95</price></article>'
        for number in range(ARTICLES)
    )
    return f"<catalogue>{''.join(items)}</catalogue>"


def write_orders():
    return json.dumps(
        [
            {
                "number": number,
                "customer": f"customer-{number % CUSTOMERS}",
                "lines": [
                    {"article": f"article-{(number * step) % ARTICLES}", "count": step} for step in range(1, number % 7)
                ],
            }
            for number in range(ORDERS)
        ]
    )


def write_mails():
    template = string.Template(
        "From: customer-$n@example.org\nTo: shop@example.org\nSubject: Order $n\n"
        "Content-Type: text/plain; charset=utf-8\n\nWhere is my order $n?\n"
    )
    return [template.substitute(n=number) for number in range(MAILS)]


def read_orders(catalogue):
    orders = [Order(**fields) for fields in json.loads(write_orders())]
    for order in orders:
        order.total = sum(catalogue.price(line["article"]) * line["count"] for line in order.lines)
    return orders


def read_customers():
    text = "name,street,city\n" + "".join(f"customer-{n},Street {n},City {n % 50}\n" for n in range(CUSTOMERS))
    return {row["name"]: row for row in csv.DictReader(io.StringIO(text))}


def read_settings():
    settings = configparser.ConfigParser()
    settings.read_dict({f"shop {n}": {f"option {k}": str(k) for k in range(40)} for n in range(30)})
    return settings


def open_shop():
    catalogue = Catalogue(write_catalogue())
    orders = read_orders(catalogue)
    search = Search()
    for order in orders:
        search.add(order)
    return catalogue, orders, search, read_customers(), Mailbox(write_mails()), read_settings()
