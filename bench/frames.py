"""What the frame limit of `heapledger run` costs programs whose stacks are deep: time and memory, beside no tracing.

    tools/with-interpreter 3.11 tools/with-packages python bench/frames.py

Each program runs in turn without tracing and at each limit, several times; the least of each is shown, as a factor of
the time and as a difference of the memory (the greatest RSS) of the untraced one.
"""

import os
import pathlib
import resource
import subprocess
import sys
import tempfile

ROUNDS = 4
LIMITS = (1, 25, 100, 256, 65535)

DJANGO = """\
import django
from django.conf import settings
settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}, ROOT_URLCONF=__name__,
    INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions"],
    MIDDLEWARE=["django.middleware.security.SecurityMiddleware", "django.contrib.sessions.middleware.SessionMiddleware",
        "django.middleware.common.CommonMiddleware", "django.contrib.auth.middleware.AuthenticationMiddleware"],
    TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates"}], ALLOWED_HOSTS=["*"], SECRET_KEY="x")
django.setup()
from django.contrib.auth.models import User
from django.core.management import call_command
from django.http import HttpResponse
from django.template import engines
from django.test import Client
from django.urls import path
page = engines["django"].from_string("{% for user in users %}<p>{{ user.username|upper }} {{ user.email }}{% endfor %}")
def root(request):
    return HttpResponse(page.render({"users": User.objects.filter(is_active=True)[:50]}))
urlpatterns = [path("", root)]
call_command("migrate", verbosity=0)
User.objects.bulk_create(User(username=f"user{n}", email=f"user{n}@example.org") for n in range(200))
client = Client()
for _ in range(300):
    assert client.get("/").status_code == 200
"""
FASTAPI = """\
import asyncio
from fastapi import Depends, FastAPI
from pydantic import BaseModel
app = FastAPI()
class Item(BaseModel):
    name: str
    price: float
    tags: list[str] = []
def known(item: int):
    return {"item": item}
@app.get("/items/{item}", response_model=list[Item])
async def read(item: int, found: dict = Depends(known)):
    return [Item(name=f"item{n}", price=n, tags=["a", "b"]) for n in range(20)]
async def ask(number):
    scope = {"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET", "scheme": "http",
        "path": f"/items/{number}", "raw_path": b"", "query_string": b"", "root_path": "", "headers": [],
        "server": ("x", 80), "client": ("y", 1)}
    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}
    async def send(message):
        assert message.get("status", 200) == 200
    await app(scope, receive, send)
async def main():
    for number in range(2000):
        await ask(number)
asyncio.run(main())
"""
SQLALCHEMY = """\
from sqlalchemy import ForeignKey, create_engine, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship, selectinload
class Base(DeclarativeBase):
    pass
class Parent(Base):
    __tablename__ = "parent"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    children: Mapped[list["Child"]] = relationship(back_populates="parent")
class Child(Base):
    __tablename__ = "child"
    id: Mapped[int] = mapped_column(primary_key=True)
    parent_id: Mapped[int] = mapped_column(ForeignKey("parent.id"))
    parent: Mapped[Parent] = relationship(back_populates="children")
engine = create_engine("sqlite://")
Base.metadata.create_all(engine)
with Session(engine) as session:
    session.add_all(Parent(name=f"parent{n}", children=[Child() for _ in range(5)]) for n in range(500))
    session.commit()
for _ in range(15):
    with Session(engine) as session:
        parents = session.scalars(select(Parent).options(selectinload(Parent.children))).all()
        assert sum(len(parent.children) for parent in parents) == 2500
"""
RECURSION = """\
import sys, threading
sys.setrecursionlimit(100_000)
threading.stack_size(512 << 20)
def deep(number):
    kept = [number, str(number)]
    return deep(number - 1) if number else 0
def main():
    for _ in range(5):
        deep(20_000)
thread = threading.Thread(target=main)
thread.start()
thread.join()
"""
PROGRAMS = {
    "Django, 300 requests": DJANGO,
    "FastAPI, 2,000 requests": FASTAPI,
    "SQLAlchemy, 15 queries": SQLALCHEMY,
    "a recursion of depth 20,000": RECURSION,
}


def measure(command, folder):
    """(seconds of processor time, bytes of RSS) of one run."""
    process = subprocess.Popen(command, cwd=folder)
    _, status, used = os.wait4(process.pid, 0)
    assert status == 0, command
    return used.ru_utime + used.ru_stime, used.ru_maxrss * 1024


def deepest(file):
    """The greatest depth of a stack in a file. By another process: a child's memory is never below its parent's."""
    code = (
        f"import heapledger; peak = heapledger.Capture.load({str(file)!r}).peak\n"
        "print(max(trace.traceback.total_nframe or 0 for trace in peak.traces))"
    )
    return int(subprocess.check_output([sys.executable, "-c", code], cwd=file.parent))


def main():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    print("| program | untraced | " + " | ".join(f"{limit:,}" for limit in LIMITS) + " | deepest | file |")
    print("|---" * (len(LIMITS) + 4) + "|")
    for name, source in PROGRAMS.items():
        with tempfile.TemporaryDirectory() as place:
            folder = pathlib.Path(place)
            (folder / "program.py").write_text(source)
            least = {}
            for _ in range(ROUNDS):
                for limit in (None, *LIMITS):
                    tracer = [] if limit is None else ["-m", "heapledger", "run", "-q", "-n", limit, "-o", "out.hlsnap"]
                    got = measure([sys.executable, *map(str, tracer), "program.py"], folder)
                    least[limit] = tuple(map(min, zip(least.get(limit, got), got, strict=True)))
            seconds, rss = least[None]
            cells = [f"{seconds:.2f} s, {rss / 2**20:.0f} MiB"]
            cells += [
                f"x{least[limit][0] / seconds:.2f}, +{(least[limit][1] - rss) / 2**20:.1f} MiB" for limit in LIMITS
            ]
            file = folder / "out.hlsnap"  # the last, at the greatest limit
            cells += [f"{deepest(file):,}", f"{file.stat().st_size / 2**20:.1f} MiB"]
            print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
