from __future__ import annotations

import pytest

from sim.base.masking import mask, mask_tree


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("postgresql://u:p@ss/w@host/db", "postgresql://u:***@host/db"),
        ("http://u:pw@h:5000/x?token=abc&a=1", "http://u:***@h:5000/x?token=***&a=1"),
        ("https://ghp_12@github.com/x", "https://***@github.com/x"),
        ("tracking.uri=http://bob:s3@h seed=0,1", "tracking.uri=http://bob:***@h seed=0,1"),
        ("MLFLOW_TRACKING_TOKEN=abcd next", "MLFLOW_TRACKING_TOKEN=*** next"),
        ("mysql://u:p@h/d?ssl_password=12", "mysql://u:***@h/d?ssl_password=***"),
        ("abfs://a/b?account_key=x&sas_key=y", "abfs://a/b?account_key=***&sas_key=***"),
        ("run --api-key sdf now", "run --api-key *** now"),
        ("policy.api_key=ab,cd seed=0,1", "policy.api_key=*** seed=0,1"),
        ("password=ab,cd,seed=0", "password=***,seed=0"),
        ("Authorization: Bearer abcdefghijkl", "Authorization: Bearer ***"),
        ("+  password: hunter2\n", "+  password: ***\n"),
        ('  "db_password": "hunter2",', '  "db_password": "***",'),
    ],
)
def test_secrets_go(text: str, masked: str) -> None:
    assert mask(text) == masked
    assert mask(masked) == masked


@pytest.mark.parametrize(
    "text",
    [
        "http://127.0.0.1:5000/#/experiments/1",
        "sqlite:////home/a/results/mlflow.db",
        "git@github.com:a/b.git",
        "policy.token=12 policy.tokens=7,8 policy.max_tokens=5",
        "the token control loop: secret stage, invalid token 'x' at line 3",
        "Unexpected token: foo",
    ],
)
def test_the_rest_stays(text: str) -> None:
    assert mask(text) == text


def test_trees_are_masked_by_key_and_by_value() -> None:
    tree = {
        "tracking": {"uri": "http://a:b@c", "password": "x", "token": "y", "pwd": 12},
        "policy": {"token": 3, "tokens": [1, 2]},
        "argv": ["python", "password=x"],
    }
    assert mask_tree(tree) == {
        "tracking": {"uri": "http://a:***@c", "password": "***", "token": "***", "pwd": "***"},
        "policy": {"token": 3, "tokens": [1, 2]},
        "argv": ["python", "password=***"],
    }
    assert tree["tracking"]["password"] == "x"
