SELECT COUNT(*) AS ablazioni
FROM dm.fact_procedure AS p
JOIN dm.dim_procedura AS d ON d.id_tipo_procedura = p.id_tipo_procedura
JOIN dm.dim_tempo AS t ON t.id_tempo = p.id_tempo
WHERE d.codice_icd9cm = '37.34'
  AND p.esito = 'COMPLETATA'
  AND t.anno = 2023;
