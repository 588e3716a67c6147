"""What is refused while the command line is read: status 2, and one line that says what was expected."""

import pytest

from mlxcache_tui.cli.main import build_parser


@pytest.mark.parametrize(
    "words",
    [
        ["--demo", "tiny", "--port"],
        ["serve", "--demo", "tiny", "--port"],
    ],
)
@pytest.mark.parametrize("port", ["65536", "-1", "8080x", "٨", ""])
def test_a_port_that_is_none(words: list[str], port: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exited:
        build_parser().parse_args([*words[:-1], f"--port={port}"])
    assert exited.value.code == 2
    assert "is not a port: expected a number from 0 to 65535" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--demo", "tiny"], ["serve", "--demo", "tiny"]])
@pytest.mark.parametrize("port", [0, 65_535])
def test_a_port(words: list[str], port: int) -> None:
    assert build_parser().parse_args([*words, "--port", str(port)]).port == port


@pytest.mark.parametrize("words", [[], ["run", "return-policy"]])
def test_an_address(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert build_parser().parse_args([*words, "--url", "localhost:8080"]).url == "localhost:8080"
    with pytest.raises(SystemExit) as exited:
        build_parser().parse_args([*words, "--url", "http://127.0.0.1:99999"])
    assert exited.value.code == 2
    assert "it should look like http://127.0.0.1:8080" in capsys.readouterr().err
