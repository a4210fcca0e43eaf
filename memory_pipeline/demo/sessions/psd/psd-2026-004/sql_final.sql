WITH ultimo_eco AS (
    SELECT DISTINCT ON (e.id_paziente) e.id_paziente, e.frazione_eiezione
    FROM dm.fact_ecocardiogramma AS e
    WHERE e.tipo_esame = 'TT'
      AND e.stato_referto = 'FIRMATO'
      AND e.frazione_eiezione IS NOT NULL
    ORDER BY e.id_paziente, e.data_esame DESC
)
SELECT COUNT(*) AS pazienti_fe_ridotta
FROM ultimo_eco
WHERE frazione_eiezione <= 40;
