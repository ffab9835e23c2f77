"""Passwords in URLs: recognised in every form, removed from messages, refused in the configuration."""

import pytest

from conf.load import STARTER, load_night
from conf.sections.redact import MLFLOW, redact, without_password
from conf.storage.home import InputError
from tests.refusal import refusal

CARRYING = {
    "https://me:s3cret@host": "https://me:***@host",
    "https://me:s3cret@host:5000/mlflow?x=1": "https://me:***@host:5000/mlflow?x=1",
    "https://:s3cret@host/": "https://:***@host/",
    "postgresql+psycopg2://me:s3cret@db/mlflow": "postgresql+psycopg2://me:***@db/mlflow",
    "https://me:s3c/r#e?t@host": "https://me:***@host",
    "https://me:s3c@ret@host": "https://me:***@host",
    "https://me:1234@host": "https://me:***@host",
    "https://me:12345678@host": "https://me:***@host",
    "https://me:5000s3cret@host/": "https://me:***@host/",
    "https://hf_s3cretS3cretS3cret@host/x": "https://***@host/x",
    "postgresql://me@db/mlflow?sslpassword=s3cret&x=1": "postgresql://me@db/mlflow?sslpassword=***&x=1",
    "https://host/api?token=s3cret": "https://host/api?token=***",
    "https://host/v1?api-key=s3cret": "https://host/v1?api-key=***",
    "https://host/v1?apikey=s3cret&x=1": "https://host/v1?apikey=***&x=1",
    "https://host/v1?x=1&access_token=s3cret": "https://host/v1?x=1&access_token=***",
    "https://host/v1?subscription-key=s3cret#x": "https://host/v1?subscription-key=***#x",
    "https://host/v1?authToken=s3cret": "https://host/v1?authToken=***",
    "https://host/v1?client_secret=s3cret": "https://host/v1?client_secret=***",
    "https://host/v1?X-Amz-Signature=s3cret": "https://host/v1?X-Amz-Signature=***",
}
PLAIN = [
    "",
    *"http://host:5000 http://host:5000/ http://host:5000/mail@example.org http://[::1]:5000/x".split(),
    *"https://me@host/mlflow sqlite:////home/me:you@work/mlflow.db databricks://profile me:s3cret@host".split(),
    *"https://host/api?x=1&monkey=2 https://host/api?keys=1&tokenizer=owl&max_tokens=8&secretary=me&design=2".split(),
]


@pytest.mark.parametrize(("url", "redacted"), CARRYING.items())
def test_a_password_is_refused_and_removed(url: str, redacted: str) -> None:
    assert redact(url) == redacted
    assert redact(f'see "{url}" and {url}, please') == f'see "{redacted}" and {redacted}, please'
    assert redact(redacted) == redacted
    line = refusal(without_password, url, "MLFLOW_TRACKING_URI", MLFLOW)
    assert line.startswith(f"MLFLOW_TRACKING_URI: {redacted}: user and password of a URL would be ")
    assert line.endswith(MLFLOW)


@pytest.mark.parametrize("url", PLAIN)
def test_other_urls_stay_as_they_are(url: str) -> None:
    assert redact(url) == url
    assert without_password(url, "MLFLOW_TRACKING_URI", MLFLOW) == url


@pytest.mark.parametrize(
    "override",
    [
        "tracking.tracking_uri=https://me:s3cret@host",
        "trackng.tracking_uri=https://me:s3cret@host",
        "tracking=[https://me:s3cret@host]",
        "tracking=[https://me:s3cret-that-is-so-long-that-its-end-would-be-cut-off-before-the-host@host]",
        "tracking.tracking_uri={a: 'https://me:s3cret@host'}",
    ],
)
def test_no_complaint_about_the_configuration_repeats_a_password(override: str) -> None:
    line = refusal(load_night, STARTER, [override])
    assert "s3cret" not in line
    assert "tracking" in line


@pytest.mark.parametrize("revision", ["main", "v1.0.0", "refs/pr/1", "007", "release-2"])
def test_revisions_of_a_hub(revision: str) -> None:
    assert load_night(STARTER, [f"student.revision='{revision}'"]).student.revision == revision


@pytest.mark.parametrize("revision", ["..", "../x", "a/../x", "/etc", "a//b", "a..b", "", "a/", "a b", "main\n"])
def test_a_revision_that_would_lead_out_of_the_hubs_cache(revision: str) -> None:
    for place in (f'student={{revision: "{revision}"}}', f'benchmarks=[{{name: gsm8k, revision: "{revision}"}}]'):
        with pytest.raises(InputError, match="revision: .* is not allowed; String should match"):
            load_night(STARTER, [place.replace("\n", "\\n")])
