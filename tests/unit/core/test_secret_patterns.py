"""What a header's name and value say of being a credential."""

from gwd.core.secret_patterns import holds_a_credential, looks_like_a_credential

SECRETS = [
    ("Authorization", "x"),
    ("X-Api-Key", "x"),
    ("x-functions-key", "abc"),
    ("api-keys", "x"),
    ("CF-Access-Client-Secret", "x"),
    ("x_auth_token", "x"),
    ("Cookie", "a=b"),
    ("x-amz-security-token", "x"),
    ("x-proxy-password", "x"),
    ("x-note", "Bearer abc"),
    ("x-note", "Basic dTpw"),
    ("x-note", "sk-proj-abcdef123456"),
    ("x-note", "AIzaSyD-abcdefgh12345"),
    ("x-note", "ghp_abcdefghijklmnop1234"),
    ("x-note", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln"),
    ("x-note", "gwi_abcdefghijk"),
    ("x-note", "Zm9vYmFyQmF6MTIzNDU2Nzg5MEFi"),
    ("x-note", "0123456789abcdef0123456789abcdef"),
]
WORDS = [
    ("anthropic-beta", "context-1m-2025-08-07,interleaved-thinking-2025-05-14"),
    ("OpenAI-Organization", "org-abcDEF123456789012345678"),
    ("x-project-id", "Zm9vYmFyQmF6MTIzNDU2Nzg5MEFi"),
    ("cf-account-id", "0123456789abcdef0123456789abcdef"),
    ("HTTP-Referer", "https://gateway.example.com/app"),
    ("X-Title", "Our gateway, the second one"),
    ("x-tenant", "tenant-7f3a9b"),
    ("x-region", "eu-central-1"),
    ("x-monkeys", "12"),
    ("user-agent", "gwd/0.1.0 (ops@example.com)"),
]


def test_credentials_are_known_by_name_or_value():
    assert [pair for pair in SECRETS if not looks_like_a_credential(*pair)] == []


def test_ordinary_headers_are_none():
    assert [pair for pair in WORDS if looks_like_a_credential(*pair)] == []


def test_a_credential_in_a_query_is_known_in_any_spelling():
    secrets = [
        *("key=x", "api_key=x", "apiKey=x", "api-key=x", "API%5FKEY=x", "token=", "accessToken=x"),
        *("a=b&access_token=x", "subscription-key=x", "sig=x", "client_secret=x", "a;key=x", "a[key]=x"),
        *("code=sk-proj-abcdef123456", "sk-proj-abcdef123456", "x=eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln"),
    ]  # fmt: skip
    assert [query for query in secrets if not holds_a_credential(query)] == []
    words = [
        *("", "api-version=2024-10-21", "api-version=2024-05-01-preview&tenant=a", "alt=sse", "region=eu"),
        *("deploymentId=Zm9vYmFyQmF6MTIzNDU2Nzg5MEFi", "monkeys=12", "project=my-project", "beta=true"),
    ]  # fmt: skip
    assert [query for query in words if holds_a_credential(query)] == []
