SELECT COUNT(DISTINCT l.id_paziente) AS pazienti_in_attesa
FROM dm.fact_lista_attesa AS l
WHERE l.tipo_intervento = 'TAVI'
  AND l.data_chiusura IS NULL
  AND EXISTS (
      SELECT 1
      FROM dm.fact_ecocardiogramma AS e
      WHERE e.id_paziente = l.id_paziente
        AND e.stato_referto = 'FIRMATO'
        AND (
            e.area_valvolare_aortica <= 1.0
            OR e.gradiente_medio_aortico >= 40
            OR e.velocita_massima_aortica >= 4.0
        )
  );
