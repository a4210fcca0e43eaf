SELECT COUNT(DISTINCT e.id_paziente) AS pazienti
FROM dm.fact_eventi_aritmici AS e
WHERE e.tipo_evento = 'SHOCK'
  AND e.giudizio = 'INAPPROPRIATO'
  AND e.data_evento >= DATE '2025-01-01'
  AND e.data_evento < DATE '2026-01-01';
