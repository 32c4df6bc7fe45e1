"""What tracing costs whole programs whose stacks are deep, at several frame limits: time and memory, beside no tracing.

    tools/with-interpreter 3.11 tools/with-packages python bench/frames.py [PROGRAM]

Each program runs in turn without tracing, with HEAPLEDGER=N in the environment, and under `heapledger run` at each
limit, which writes a file and says which lines held most. Of several turns the least is shown, as a factor of the time
and as a difference of the memory (the greatest RSS) of the untraced one. PROGRAM is the beginning of a name.
"""

import os
import pathlib
import resource
import subprocess
import sys
import tempfile

ROUNDS = 4
IN_ENVIRONMENT = (1, 25)
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


def measure(command, folder, **variables):
    """(seconds of processor time, bytes of RSS) of one run."""
    environment = {**os.environ, **variables}
    process = subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    assert status == 0, command
    return used.ru_utime + used.ru_stime, used.ru_maxrss * 1024


def ways(folder):
    """{name of a way to run program.py: what measures it}."""
    program = [sys.executable, "program.py"]
    made = {"untraced": lambda: measure(program, folder)}
    for limit in IN_ENVIRONMENT:
        made[f"`HEAPLEDGER={limit}`"] = lambda limit=limit: measure(program, folder, HEAPLEDGER=str(limit))
    for limit in LIMITS:
        run = [sys.executable, "-m", "heapledger", "run", "-n", str(limit), "-o", "out.hlsnap", "program.py"]
        made[f"run, {limit:,}"] = lambda run=run: measure(run, folder)
    return made


def look_into(file):
    """Blocks at the peak, and the greatest depth of a stack. By another process: a child's memory is never below its
    parent's."""
    code = (
        f"import heapledger; traces = heapledger.Capture.load({str(file)!r}).peak.traces\n"
        "print(len(traces), max(trace.traceback.total_nframe or 0 for trace in traces))"
    )
    return map(int, subprocess.check_output([sys.executable, "-c", code], cwd=file.parent).split())


def row(source):
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        (folder / "program.py").write_text(source)
        least = {}
        for _ in range(ROUNDS):
            for way, run in ways(folder).items():
                got = run()
                least[way] = tuple(map(min, zip(least.get(way, got), got, strict=True)))
        seconds, rss = least.pop("untraced")
        file = folder / "out.hlsnap"  # the last, at the greatest limit
        blocks, deepest = look_into(file)
        return [
            f"{blocks:,}",
            f"{seconds:.2f} s, {rss / 1e6:.0f} MB",
            *(f"x{one[0] / seconds:.2f}, +{(one[1] - rss) / 1e6:.1f} MB" for one in least.values()),
            f"{deepest:,}",
            f"{file.stat().st_size / 1e6:.1f} MB",
        ]


def main():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    print("| program | blocks | " + " | ".join(ways(None)) + " | deepest | file |")
    print("|---" * (len(ways(None)) + 4) + "|")
    for name, source in PROGRAMS.items():
        if name.startswith(tuple(sys.argv[1:]) or ""):
            print(f"| {name} | {' | '.join(row(source))} |", flush=True)


if __name__ == "__main__":
    main()
