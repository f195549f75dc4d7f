"""`sash serve`, as from the shell: it says where it is, answers there, and refuses to be open to all."""

import json
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request

import pytest

from sash import agg, cli
from sash.errors import DefinitionError
from sash.serve import server
from sash.serve.server import Address, tokens
from sash.wheel import TileStore

pa = pytest.importorskip("pyarrow", reason="the extra 'serve' is not installed")
pytest.importorskip("uvicorn", reason="the extra 'serve' is not installed")


@pytest.fixture
def store(tmp_path):
    made = TileStore.create(tmp_path / "trips", aggs={"n": agg.count()}, grain="1m", key="zone")
    at = pa.array([0, 60_000_000], pa.timestamp("us", "UTC"))
    made.write(pa.table({"zone": ["a", "b"], "slice_start": at, "n": [2, 3]}), query="q", batch=0, watermark=120_000_000)
    return made.path


@pytest.mark.parametrize("ended", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_it_is_told_to_end(store, tmp_path, ended):
    (tmp_path / "tokens").write_text("# ours\nfirst-token\nsecond-token\n")
    options = ["--listen", "0", "--token-file", str(tmp_path / "tokens")]
    command = [sys.executable, "-m", "sash.cli", "serve", str(store), f"again={store}", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        said = run.stdout.readline()
        assert said.startswith("trips, again: http://127.0.0.1:")
        url = said.split()[2]
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"{url}api/stores")
        assert refused.value.code == 401
        asked = urllib.request.Request(f"{url}api/stores/again/range?key=b", headers={"Authorization": "Bearer second-token"})
        assert json.load(urllib.request.urlopen(asked))["rows"] == [{"zone": "b", "time": "1970-01-01T00:00:00Z", "n": 3}]
        run.send_signal(ended)
        out, err = run.communicate(timeout=30)
    assert (out, err) == ("", "")


@pytest.mark.parametrize("listen", ["0.0.0.0:0", "[::]:0", "192.0.2.1:80", "example.org"])
def test_other_addresses_than_loopback_need_a_token(store, capsys, listen):
    assert cli.main(["serve", str(store), "--listen", listen]) == 1
    assert "there is no token. Add --token-file FILE" in capsys.readouterr().err


def test_what_is_asked_wrongly_is_one_line(store, tmp_path, capsys):
    (tmp_path / "none").write_text("\n")
    for options, said in (
        (["--listen", "here:there"], "'here:there' is not an address"),
        (["--token", "short"], "at least 8 visible ASCII characters"),
        (["--token-file", str(tmp_path / "none")], "holds no token"),
        (["--memory", "lots"], "--memory lots is no size"),
        (["--seconds", "0"], "--seconds 0 is no time"),
        ([str(store)], "two stores have one name"),
        ([f"a b={store}"], "can't be the name of a store"),
        ([f"x={tmp_path / 'nowhere'}"], "nowhere"),
    ):
        assert cli.main(["serve", str(store), *options]) == 1, options
        out, err = capsys.readouterr()
        assert said in err
        assert (out, err.count("\n")) == ("", 1)


def test_answers_are_not_held_back_for_the_acknowledgement_of_their_head():
    # asyncio sets TCP_NODELAY only on sockets made for TCP by name. Without it every answer waits 40 ms.
    _, listening = server._server(None, Address("127.0.0.1", 0))
    with listening:
        assert listening.proto == socket.IPPROTO_TCP


def test_an_address_that_is_taken_is_said_so(store, capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert cli.main(["serve", str(store), "--listen", str(taken.getsockname()[1])]) == 1
    assert "can't be listened on: Address already in use" in capsys.readouterr().err


def test_addresses_and_tokens_are_read():
    assert Address.read("9000", 1) == ("127.0.0.1", 9000)
    assert Address.read("localhost", 7).loopback
    assert Address.read("127.3.2.1:5", 7).loopback
    assert not Address.read("0.0.0.0", 7).loopback
    assert Address.read("[::1]:5", 7).url == "http://[::1]:5/"
    with pytest.raises(DefinitionError):
        Address.read("a:99999", 7)
    assert tokens(None, None) is None
