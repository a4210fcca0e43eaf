-- What the SQL of solved questions compares columns with, so that such values can be masked wherever they are asked about.
CREATE TABLE card_literal (
    workspace  text NOT NULL,
    literal    text NOT NULL,                           -- folded
    card_id    text NOT NULL,
    PRIMARY KEY (workspace, literal, card_id),
    FOREIGN KEY (workspace, card_id) REFERENCES card ON DELETE CASCADE
);
CREATE INDEX card_literal_card ON card_literal (workspace, card_id);

ALTER TABLE card_literal ENABLE ROW LEVEL SECURITY;
CREATE POLICY workspace_only ON card_literal USING (workspace = current_setting('memory.workspace', true))
    WITH CHECK (workspace = current_setting('memory.workspace', true));

ALTER TABLE card
    -- Of a solved question, the words that it is asked in; NULL until they were read, which a migration sees to.
    ADD COLUMN question_words text[],
    -- Those of the workspace's literals that it names.
    ADD COLUMN named_literals text[] NOT NULL DEFAULT '{}';
