ALTER TABLE sessions RENAME COLUMN beat TO heartbeat;
DROP INDEX one_answer;
DROP INDEX one_under_way;
DROP INDEX calls_of_request;
ALTER TABLE calls RENAME TO calls_1;
-- tables.sql
INSERT INTO texts (id, digest, body) SELECT id, bytes_of(key), text FROM requests;
INSERT INTO calls SELECT calls_1.id, bytes_of(key), model, request, NULL, '', session, state, kind, sent_at, ended_at,
    outcome FROM calls_1 JOIN requests ON requests.id = request;
DROP TABLE calls_1;
DROP TABLE requests;
