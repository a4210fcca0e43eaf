SELECT
    COUNT(*) AS tavi,
    COUNT(*) FILTER (WHERE z.data_decesso <= p.data_procedura + 30) AS decessi_30_giorni,
    ROUND(
        100.0 * COUNT(*) FILTER (WHERE z.data_decesso <= p.data_procedura + 30) / NULLIF(COUNT(*), 0), 1
    ) AS mortalita_percentuale
FROM dm.fact_procedure AS p
JOIN dm.dim_procedura AS d ON d.id_tipo_procedura = p.id_tipo_procedura
JOIN dm.dim_paziente AS z ON z.id_paziente = p.id_paziente
WHERE d.categoria = 'TAVI'
  AND p.esito = 'COMPLETATA'
  AND p.data_procedura >= DATE '2024-01-01'
  AND p.data_procedura < DATE '2025-01-01';
