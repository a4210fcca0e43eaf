WITH indice AS (
    SELECT r.id_ricovero, r.id_paziente, r.data_dimissione
    FROM dm.fact_ricoveri AS r
    WHERE r.regime = 'O'
      AND r.modalita_dimissione NOT IN ('1', '6', '7')
      AND r.data_dimissione >= DATE '2024-01-01'
      AND r.data_dimissione < DATE '2025-01-01'
      AND (
          r.diagnosi_principale LIKE '428%'
          OR r.diagnosi_principale IN ('402.01', '402.11', '402.91', '404.01', '404.03', '404.11', '404.13', '404.91', '404.93')
      )
),
esito AS (
    SELECT
        i.id_ricovero,
        EXISTS (
            SELECT 1
            FROM dm.fact_ricoveri AS s
            WHERE s.id_paziente = i.id_paziente
              AND s.regime = 'O'
              AND s.tipo_ammissione = 'U'
              AND s.data_ammissione > i.data_dimissione
              AND s.data_ammissione <= i.data_dimissione + 30
        ) AS riammesso
    FROM indice AS i
)
SELECT
    COUNT(*) AS ricoveri_indice,
    ROUND(100.0 * COUNT(*) FILTER (WHERE riammesso) / NULLIF(COUNT(*), 0), 1) AS tasso_riammissione
FROM esito;
