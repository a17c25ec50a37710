CREATE TABLE texts (id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, body BLOB NOT NULL);
CREATE TABLE calls (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    key BLOB NOT NULL, model TEXT NOT NULL,
    skeleton INTEGER NOT NULL REFERENCES texts (id), shared INTEGER REFERENCES texts (id), nonce TEXT NOT NULL,
    session INTEGER NOT NULL REFERENCES sessions (id),
    state TEXT NOT NULL CHECK (
        state IN ('claimed', 'sent', 'in_doubt', 'done', 'unreadable', 'failed', 'replaced', 'resent')
    ),
    kind TEXT, sent_at REAL, ended_at REAL, result TEXT
);
CREATE UNIQUE INDEX one_answer ON calls (key) WHERE state = 'done';
CREATE UNIQUE INDEX one_in_flight ON calls (key) WHERE state IN ('claimed', 'sent', 'in_doubt');
CREATE INDEX without_answer ON calls (key) WHERE state IN ('unreadable', 'failed');
