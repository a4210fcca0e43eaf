SELECT
    e.classe_priorita,
    COUNT(*) AS esami,
    ROUND(AVG(e.data_esame - e.data_richiesta), 1) AS attesa_media_giorni
FROM dm.fact_ecocardiogramma AS e
WHERE e.provenienza = 'ESTERNO'
  AND e.stato_referto = 'FIRMATO'
  AND e.data_esame >= DATE '2025-01-01'
  AND e.data_esame < DATE '2026-01-01'
GROUP BY e.classe_priorita
ORDER BY e.classe_priorita;
