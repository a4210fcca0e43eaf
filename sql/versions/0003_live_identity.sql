-- Which of a workspace's embedding identities recall uses. The index itself says it to recall; this is the archive's
-- record of it, for whoever asks with the index away. While the embeddings change there is a second one, which is filled
-- and not live yet.
ALTER TABLE embedding_identity ADD COLUMN live boolean NOT NULL DEFAULT false;
CREATE UNIQUE INDEX embedding_identity_live ON embedding_identity (workspace) WHERE live;

UPDATE embedding_identity i SET live = true
WHERE NOT EXISTS (SELECT FROM embedding_identity o WHERE o.workspace = i.workspace AND o.identity <> i.identity);
