WITH ricoveri AS (
    SELECT r.id_ricovero, r.id_paziente, r.data_ammissione, r.data_dimissione
    FROM dm.fact_ricoveri AS r
    WHERE r.data_dimissione >= DATE '2024-01-01'
      AND r.data_dimissione < DATE '2025-01-01'
      AND (
          r.diagnosi_principale LIKE '428%'
          OR r.diagnosi_principale IN ('402.01', '402.11', '402.91', '404.01', '404.03', '404.11', '404.13', '404.91', '404.93')
      )
),
fe AS (
    SELECT DISTINCT ON (r.id_ricovero) r.id_ricovero, e.frazione_eiezione
    FROM ricoveri AS r
    JOIN dm.fact_ecocardiogramma AS e
      ON e.id_paziente = r.id_paziente
     AND e.data_esame BETWEEN r.data_ammissione AND r.data_dimissione
    WHERE e.stato_referto = 'FIRMATO'
      AND e.frazione_eiezione IS NOT NULL
    ORDER BY r.id_ricovero, e.data_esame DESC
)
SELECT ROUND(AVG(frazione_eiezione)::NUMERIC, 1) AS fe_media, COUNT(*) AS ricoveri_con_eco
FROM fe;
