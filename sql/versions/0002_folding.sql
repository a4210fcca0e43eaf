-- Of the letters that Unicode folds to two, only the sharp s is left to itself by NFKD and by lower(upper(…)).
-- The apostrophe is spelled in many ways, by keyboards and by what corrects them; they are made one before NFKD, which
-- takes one of them for an accent on a space.
CREATE OR REPLACE FUNCTION folded(original text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN replace(regexp_replace(
    lower(upper(normalize(translate(original, '’‘ʼ´`', repeat('''', 5)), NFKD))),
    '[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u064b-\u065f\u0670\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]',
    '', 'g'), 'ß', 'ss');

-- What is stored of a generated column follows its function only when the row is written.
UPDATE card SET subject = subject;
