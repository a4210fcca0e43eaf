SELECT
    o.cognome,
    o.nome,
    COUNT(*) AS crt_d,
    COUNT(*) FILTER (WHERE i.tipo_intervento = 'UPGRADE') AS di_cui_upgrade
FROM dm.fact_impianti AS i
JOIN dm.dim_dispositivo AS d ON d.id_dispositivo = i.id_dispositivo
JOIN dm.fact_procedure AS p ON p.id_procedura = i.id_procedura
JOIN dm.dim_operatore AS o ON o.id_operatore = p.id_primo_operatore
WHERE d.tipo_dispositivo = 'CRT-D'
  AND i.data_impianto >= DATE '2025-01-01'
  AND i.data_impianto < DATE '2026-01-01'
GROUP BY o.id_operatore, o.cognome, o.nome
ORDER BY crt_d DESC, o.cognome, o.nome;
