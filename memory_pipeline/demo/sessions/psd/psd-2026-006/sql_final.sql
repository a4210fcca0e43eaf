WITH prima_ablazione AS (
    SELECT p.id_paziente, MIN(p.data_procedura) AS data_prima
    FROM dm.fact_procedure AS p
    JOIN dm.dim_procedura AS d ON d.id_tipo_procedura = p.id_tipo_procedura
    WHERE d.codice_icd9cm = '37.34'
      AND p.indicazione = 'FA'
      AND p.esito = 'COMPLETATA'
    GROUP BY p.id_paziente
)
SELECT COUNT(DISTINCT a.id_paziente) AS pazienti_con_recidiva
FROM prima_ablazione AS a
JOIN dm.fact_eventi_aritmici AS e ON e.id_paziente = a.id_paziente
WHERE e.tipo_evento IN ('FA', 'FLA', 'TA')
  AND e.durata_secondi >= 30
  AND e.data_evento > a.data_prima + 90
  AND e.data_evento <= a.data_prima + 365;
