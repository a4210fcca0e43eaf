WITH utic AS (
    SELECT
        r.id_ricovero,
        SUM(EXTRACT(EPOCH FROM m.data_ora_uscita - m.data_ora_ingresso)) / 86400.0 AS giorni
    FROM dm.fact_ricoveri AS r
    JOIN dm.fact_movimenti_reparto AS m ON m.id_ricovero = r.id_ricovero
    JOIN dm.dim_reparto AS d ON d.id_reparto = m.id_reparto
    WHERE d.codice_disciplina = '50'
      AND r.diagnosi_principale LIKE '410._1'
      AND r.diagnosi_principale NOT IN ('410.71', '410.91')
      AND r.data_dimissione >= DATE '2025-01-01'
      AND r.data_dimissione < DATE '2026-01-01'
    GROUP BY r.id_ricovero
)
SELECT ROUND(AVG(giorni)::NUMERIC, 1) AS degenza_media_utic
FROM utic;
